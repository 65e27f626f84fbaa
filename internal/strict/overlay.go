package strict

import (
	"fmt"
	"reflect"
)

// Overlay sets each field of the struct that under points to which is not zero in the
// struct over. Structs are overlaid field by field. A struct behind a pointer is copied first.
func Overlay(under, over any) { overlay(reflect.ValueOf(under).Elem(), reflect.ValueOf(over)) }

func overlay(under, over reflect.Value) {
	switch {
	case over.IsZero():
	case over.Kind() == reflect.Struct:
		for _, f := range Fields(over.Type()) {
			overlay(under.FieldByIndex(f.Index), over.FieldByIndex(f.Index))
		}
	case over.Kind() == reflect.Pointer:
		whole := reflect.New(over.Type().Elem())
		if !under.IsNil() {
			whole.Elem().Set(under.Elem())
		}
		overlay(whole.Elem(), over.Elem())
		under.Set(whole)
	default:
		under.Set(over)
	}
}

// Differences returns an error for each field that differs between two structs of one type,
// with its path and both values. Fields that are not data do not count.
func Differences(was, is any) []error {
	return differences("", reflect.ValueOf(was), reflect.ValueOf(is))
}

func differences(path string, was, is reflect.Value) (errs []error) {
	if was.Kind() == reflect.Pointer {
		zero := reflect.Zero(was.Type().Elem())
		behind := func(v reflect.Value) reflect.Value {
			if v.IsNil() {
				return zero
			}
			return v.Elem()
		}
		was, is = behind(was), behind(is)
	}
	if was.Kind() == reflect.Struct {
		for _, f := range Fields(was.Type()) {
			errs = append(errs, differences(Field(path, Name(f)), was.FieldByIndex(f.Index), is.FieldByIndex(f.Index))...)
		}
		return errs
	}
	if !reflect.DeepEqual(was.Interface(), is.Interface()) {
		errs = append(errs, At(path, fmt.Errorf("%v cannot become %v", was, is)))
	}
	return errs
}
