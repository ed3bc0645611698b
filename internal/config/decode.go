package config

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"platform/internal/units"
)

// setText parses the text of a variable or flag into a value.
func setText(v reflect.Value, text string) error {
	if !utf8.ValidString(text) {
		return errors.New("the text is not valid UTF-8")
	}
	switch v.Kind() {
	case reflect.String, reflect.Pointer:
	case reflect.Slice:
		if isClusters(v) {
			return setClustersText(v, text)
		}
		return setList(v, splitList(text))
	case reflect.Map:
		return setMapText(v, text)
	case reflect.Bool:
		b, err := strconv.ParseBool(strings.ToLower(text))
		if err != nil {
			return mismatch(v, quoted(text))
		}
		v.SetBool(b)
		return nil
	case reflect.Float64:
		if isText(v) {
			break
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return mismatch(v, quoted(text))
		}
		v.SetFloat(f)
		return nil
	case reflect.Int:
		if _, isText := v.Addr().Interface().(encoding.TextUnmarshaler); isText {
			break
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return mismatch(v, quoted(text))
		}
		v.SetInt(n)
		return nil
	}
	return setString(v, text)
}

// setTOML sets a value from the output of the TOML decoder.
func setTOML(v reflect.Value, value any) error {
	switch value := value.(type) {
	case string:
		if k := v.Kind(); k == reflect.Bool || k == reflect.Float64 || (k == reflect.Int && !isText(v)) {
			return mismatch(v, quoted(value))
		}
		if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
			return mismatch(v, quoted(value))
		}
		return setString(v, value)
	case bool:
		if v.Kind() != reflect.Bool {
			return mismatch(v, strconv.FormatBool(value))
		}
		v.SetBool(value)
		return nil
	case int64:
		return setInteger(v, value)
	case float64:
		if v.Kind() == reflect.Pointer || isText(v) {
			return setString(v, strconv.FormatFloat(value, 'g', -1, 64))
		}
		if v.Kind() != reflect.Float64 || math.IsNaN(value) || math.IsInf(value, 0) {
			return mismatch(v, strconv.FormatFloat(value, 'g', -1, 64))
		}
		v.SetFloat(value)
		return nil
	case []any:
		if isClusters(v) {
			return setClusters(v, value)
		}
		return setArray(v, value)
	case map[string]any:
		return setTable(v, value)
	}
	return mismatch(v, fmt.Sprint(value))
}

// setString sets a string or a TextUnmarshaler.
func setString(v reflect.Value, text string) error {
	if v.Kind() == reflect.Pointer {
		fresh := reflect.New(v.Type().Elem())
		if err := setString(fresh.Elem(), text); err != nil {
			return err
		}
		v.Set(fresh)
		return nil
	}
	if reader, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := reader.UnmarshalText([]byte(text)); err != nil {
			return reason(v, text, err)
		}
		return nil
	}
	v.SetString(text)
	return nil
}

// setInteger sets a number, or a text type that reads whole numbers.
func setInteger(v reflect.Value, n int64) error {
	switch {
	case v.Kind() == reflect.Float64:
		v.SetFloat(float64(n))
	case v.Kind() == reflect.Pointer || isText(v):
		return setString(v, strconv.FormatInt(n, 10))
	case v.Kind() == reflect.Int:
		v.SetInt(n)
	default:
		return mismatch(v, strconv.FormatInt(n, 10))
	}
	return nil
}

func setArray(v reflect.Value, items []any) error {
	if v.Kind() != reflect.Slice {
		return mismatch(v, "a list")
	}
	list := make([]string, len(items))
	for i, item := range items {
		text, ok := item.(string)
		if !ok {
			return mismatch(v, fmt.Sprintf("a list with %v", item))
		}
		list[i] = text
	}
	return setList(v, list)
}

func setTable(v reflect.Value, table map[string]any) error {
	if v.Kind() != reflect.Map {
		return mismatch(v, "a table")
	}
	fresh := make(map[string]string, len(table))
	for name, item := range table {
		text, ok := item.(string)
		if !ok {
			return mismatch(v, fmt.Sprintf("a table with %s = %v", name, item))
		}
		fresh[name] = text
	}
	setMap(v, fresh)
	return nil
}

// setList sets a list; an empty one is nil, as in the defaults.
func setList(v reflect.Value, list []string) error {
	v.SetZero()
	if len(list) > 0 {
		v.Set(reflect.ValueOf(list))
	}
	return nil
}

// setMap sets a table; an empty one is nil.
func setMap(v reflect.Value, table map[string]string) {
	v.SetZero()
	if len(table) > 0 {
		v.Set(reflect.ValueOf(table))
	}
}

func isText(v reflect.Value) bool {
	_, ok := v.Addr().Interface().(encoding.TextUnmarshaler)
	return ok
}

// mismatch describes which kind of value was expected instead of got.
func mismatch(v reflect.Value, got string) error {
	return fmt.Errorf("expected %s, got %s", expected(v.Type()), got)
}

// reason is mismatch, or the more specific message of the parser.
func reason(v reflect.Value, text string, err error) error {
	want := expected(v.Type())
	if err.Error() == want {
		return mismatch(v, quoted(text))
	}
	return fmt.Errorf("expected %s: %w", want, err)
}

func expected(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch value := reflect.New(t).Interface().(type) {
	case interface{ expected() string }:
		return value.expected()
	case *units.Duration:
		return `a duration such as "1m 30s"`
	case *units.ByteSize:
		return `a size such as "32 MiB" or a number of bytes`
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return `a list of texts such as ["a", "b"]`
	case reflect.Map:
		return `a table of texts such as { name = "value" }`
	}
	return "a text"
}

func quoted(text string) string { return strconv.Quote(text) }
