package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"platform/internal/suggest"
)

// CheckFields rejects fields of a JSON value that the Go type lacks, and two whose names differ only
// in case, including those of nested objects. The decoder would ignore options with misspelled
// names, and use one of the two. Types with their own UnmarshalJSON are skipped.
func CheckFields(body json.RawMessage, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return checkObject(body, t, path)
	case reflect.Slice:
		if elem := t.Elem(); elem.Kind() == reflect.Struct || elem.Kind() == reflect.Pointer {
			return checkElements(body, elem, path)
		}
	}
	return nil
}

func checkObject(body json.RawMessage, t reflect.Type, path string) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil || object == nil {
		return nil //nolint:nilerr // null, or a form that the decoder has accepted or rejected
	}
	fields := map[string]reflect.Type{}
	for field := range t.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = field.Type
		} else if name == "" && field.IsExported() {
			fields[field.Name] = field.Type
		}
	}
	given := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		known := knownField(fields, name)
		if known == "" {
			return Unprocessable("unknown field '%s'%s", path+name, Alternatives(name, "fields", slices.Sorted(maps.Keys(fields))))
		}
		if other, twice := given[known]; twice {
			return BadRequest("the request body has the field '%s' twice, as '%s' and as '%s'; only one of the values would take effect", path+known, other, name)
		}
		given[known] = name
		if err := CheckFields(object[name], fields[known], path+name+"."); err != nil {
			return err
		}
	}
	return nil
}

// knownField returns the name of a field as the type declares it, empty if it does not exist. Like
// the decoder, it ignores case.
func knownField(fields map[string]reflect.Type, name string) string {
	if _, ok := fields[name]; ok {
		return name
	}
	for known := range fields {
		if strings.EqualFold(known, name) {
			return known
		}
	}
	return ""
}

func checkElements(body json.RawMessage, elem reflect.Type, path string) error {
	var elements []json.RawMessage
	if err := json.Unmarshal(body, &elements); err != nil {
		return nil //nolint:nilerr // the decoder has accepted or rejected it
	}
	for i, e := range elements {
		if err := CheckFields(e, elem, fmt.Sprintf("%s[%d].", strings.TrimSuffix(path, "."), i)); err != nil {
			return err
		}
	}
	return nil
}

// Alternatives returns the end of a message about an unknown name: the most similar name, or the
// list of all known ones.
func Alternatives(name, what string, known []string) string {
	if near := suggest.Nearest(name, known); near != "" {
		return "; did you mean '" + near + "'?"
	}
	if len(known) == 0 {
		return "; there are none here"
	}
	return "; the " + what + " are " + strings.Join(known, ", ")
}
