package strict

import (
	"encoding"
	"encoding/json"
	"reflect"
	"time"
)

// Encode returns the document that Decode reads into a struct equal to from. Fields that are
// zero are left out.
func Encode(from any) ([]byte, error) {
	document, err := plain(reflect.ValueOf(from))
	if err != nil {
		return nil, err
	}
	return json.Marshal(document)
}

// plain returns a value as package json writes it.
func plain(v reflect.Value) (any, error) {
	if text, ok := v.Interface().(encoding.TextMarshaler); ok {
		s, err := text.MarshalText()
		return string(s), err
	}
	if d, ok := v.Interface().(time.Duration); ok {
		return d.String(), nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		return plain(v.Elem())
	case reflect.Struct:
		object := map[string]any{}
		for _, f := range Fields(v.Type()) {
			value := v.FieldByIndex(f.Index)
			if value.IsZero() {
				continue
			}
			one, err := plain(value)
			if err != nil {
				return nil, At(Name(f), err)
			}
			object[Name(f)] = one
		}
		return object, nil
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			one, err := plain(v.Index(i))
			if err != nil {
				return nil, err
			}
			list[i] = one
		}
		return list, nil
	case reflect.Map:
		table := map[string]any{}
		for _, key := range v.MapKeys() {
			one, err := plain(v.MapIndex(key))
			if err != nil {
				return nil, At(Key("", key.String()), err)
			}
			table[key.String()] = one
		}
		return table, nil
	}
	return v.Interface(), nil
}
