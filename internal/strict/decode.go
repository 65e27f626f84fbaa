// Package strict reads JSON into data, and reports all errors at once.
//
// Unknown and duplicate fields, null and values of another type are errors. Each error begins with
// the path of the value, such as routes[2].limits[0]. The name of a field is that of the Go field
// in lower camel case. Durations, and types with UnmarshalText, are texts. Functions and interfaces
// cannot be read, so their fields are unknown.
package strict

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Decode reads a JSON document into the struct that into points to. If it returns an error,
// the struct may hold a part of the document.
func Decode(text []byte, into any) error {
	root, err := parse(text)
	if err != nil {
		return err
	}
	var d decoder
	d.value("", root, reflect.ValueOf(into).Elem())
	return errors.Join(d.errs...)
}

// A decoder collects the errors of a document.
type decoder struct{ errs []error }

func (d *decoder) fail(path, format string, args ...any) {
	d.errs = append(d.errs, At(path, fmt.Errorf(format, args...)))
}

// At returns err with the path of the value that it is about.
func At(path string, err error) error {
	if path == "" {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// value reads a value of the document into a Go value.
func (d *decoder) value(path string, n node, into reflect.Value) {
	if text, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if s, ok := d.text(path, n); ok {
			if err := text.UnmarshalText([]byte(s)); err != nil {
				d.fail(path, "%w", err)
			}
		}
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.value(path, n, into.Elem())
	case reflect.Struct:
		d.object(path, n, into)
	case reflect.Map:
		d.table(path, n, into)
	case reflect.Slice:
		d.list(path, n, into)
	default:
		d.scalar(path, n, into)
	}
}

// scalar reads a text, a number, a boolean or a duration.
func (d *decoder) scalar(path string, n node, into reflect.Value) {
	if into.Type() == reflect.TypeFor[time.Duration]() {
		s, _ := n.scalar.(string)
		length, err := time.ParseDuration(s)
		if err != nil {
			d.fail(path, "%s is not a duration such as 500ms or 1m30s", n)
		}
		into.SetInt(int64(length))
		return
	}
	switch into.Kind() {
	case reflect.String:
		if s, ok := d.text(path, n); ok {
			into.SetString(s)
		}
	case reflect.Bool:
		b, ok := n.scalar.(bool)
		if !ok {
			d.fail(path, "%s is not true or false", n)
		}
		into.SetBool(b)
	case reflect.Int, reflect.Int64:
		number, _ := n.scalar.(json.Number)
		i, err := strconv.ParseInt(string(number), 10, into.Type().Bits())
		if err != nil {
			d.fail(path, "%s is not a whole number", n)
		}
		into.SetInt(i)
	case reflect.Float64:
		number, _ := n.scalar.(json.Number)
		f, err := strconv.ParseFloat(string(number), 64)
		if err != nil {
			d.fail(path, "%s is not a number", n)
		}
		into.SetFloat(f)
	default:
		panic(fmt.Sprintf("strict: %s cannot be read", into.Type()))
	}
}

func (d *decoder) text(path string, n node) (string, bool) {
	s, ok := n.scalar.(string)
	if !ok {
		d.fail(path, "%s is not a text in quotes", n)
	}
	return s, ok
}

// object reads the fields of a struct.
func (d *decoder) object(path string, n node, into reflect.Value) {
	if n.kind != '{' {
		d.fail(path, "%s is not an object", n)
		return
	}
	fields := Fields(into.Type())
	for _, m := range d.members(path, n) {
		at := Field(path, m.key)
		i := slices.IndexFunc(fields, func(f reflect.StructField) bool { return Name(f) == m.key })
		if i < 0 {
			var known []string
			for _, f := range fields {
				known = append(known, Name(f))
			}
			d.fail(at, "unknown field; there are %s", strings.Join(known, ", "))
			continue
		}
		d.value(at, m.value, into.FieldByIndex(fields[i].Index))
	}
}

// table reads a map with keys that are texts.
func (d *decoder) table(path string, n node, into reflect.Value) {
	if n.kind != '{' {
		d.fail(path, "%s is not an object", n)
		return
	}
	into.Set(reflect.MakeMap(into.Type()))
	for _, m := range d.members(path, n) {
		value := reflect.New(into.Type().Elem()).Elem()
		d.value(Key(path, m.key), m.value, value)
		into.SetMapIndex(reflect.ValueOf(m.key), value)
	}
}

// list reads a slice.
func (d *decoder) list(path string, n node, into reflect.Value) {
	if n.kind != '[' {
		d.fail(path, "%s is not a list", n)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(n.items), len(n.items)))
	for i, item := range n.items {
		d.value(fmt.Sprintf("%s[%d]", path, i), item, into.Index(i))
	}
}

// members returns the members of an object, each key once.
func (d *decoder) members(path string, n node) (all []member) {
	seen := map[string]bool{}
	for _, m := range n.members {
		if seen[m.key] {
			d.fail(path, "%q stands twice", m.key)
			continue
		}
		seen[m.key] = true
		all = append(all, m)
	}
	return all
}

// Fields returns the fields of a struct that are data.
func Fields(of reflect.Type) (all []reflect.StructField) {
	for _, f := range reflect.VisibleFields(of) {
		if k := f.Type.Kind(); f.IsExported() && k != reflect.Func && k != reflect.Interface {
			all = append(all, f)
		}
	}
	return all
}

// Name returns the name of a field in a document.
func Name(f reflect.StructField) string { return Path(f.Name) }

// Path returns the path of a Go field such as Line.MaxWait.
func Path(field string) string {
	names := strings.Split(field, ".")
	for i, name := range names {
		names[i] = strings.ToLower(name[:1]) + name[1:]
	}
	return strings.Join(names, ".")
}

// Field returns the path of a field of the value at path.
func Field(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Key returns the path of a map's value.
func Key(path, key string) string { return fmt.Sprintf("%s[%q]", path, key) }
