package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/internal/suggest"
)

// checkFields rejects fields of a JSON value that the Go type lacks, and two whose names differ only
// in case, including those of nested objects. The decoder would ignore options with misspelled
// names, and use one of the two. Types with their own UnmarshalJSON are skipped.
func checkFields(body json.RawMessage, t reflect.Type, path string) error {
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
	for _, name := range sortedKeys(object) {
		known := knownField(fields, name)
		if known == "" {
			return unprocessable("unknown field '%s'%s", path+name, alternatives(name, "fields", sortedKeys(fields)))
		}
		if other, twice := given[known]; twice {
			return badRequest("the request body has the field '%s' twice, as '%s' and as '%s'; only one of the values would take effect", path+known, other, name)
		}
		given[known] = name
		if err := checkFields(object[name], fields[known], path+name+"."); err != nil {
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
		if err := checkFields(e, elem, fmt.Sprintf("%s[%d].", strings.TrimSuffix(path, "."), i)); err != nil {
			return err
		}
	}
	return nil
}

// alternatives returns the end of a message about an unknown name: the most similar name, or the
// list of all known ones.
func alternatives(name, what string, known []string) string {
	if near := suggest.Nearest(name, known); near != "" {
		return "; did you mean '" + near + "'?"
	}
	if len(known) == 0 {
		return "; there are none here"
	}
	return "; the " + what + " are " + strings.Join(known, ", ")
}

// rejectUnknownQuery rejects query parameters that the OpenAPI description of a route does not
// contain, and several values of one that is not a list there: only one of them would take effect.
func rejectUnknownQuery(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Request().URL.RawQuery == "" {
			return next(c)
		}
		method := c.Request().Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		op, described := operations[method+" "+c.Path()]
		if !described || op.anyQuery {
			return next(c)
		}
		names := op.queryNames()
		for _, given := range sortedKeys(c.QueryParams()) {
			if !slices.Contains(names, given) {
				return badRequest("unknown query parameter '%s'%s", given, alternatives(given, "parameters", names))
			}
			if values := c.QueryParams()[given]; len(values) > 1 && !op.repeatable(given) {
				return badRequest("The query parameter '%s' is given %d times; it has one value", given, len(values))
			}
		}
		return next(c)
	}
}

// queryNames returns the names of an operation's query parameters, sorted.
func (op operation) queryNames() []string {
	var names []string
	for _, parameter := range op.query {
		names = append(names, parameter["name"].(string))
	}
	slices.Sort(names)
	return names
}

// repeatable reports whether a query parameter may have several values.
func (op operation) repeatable(name string) bool {
	return slices.ContainsFunc(op.query, func(parameter object) bool {
		return parameter["name"] == name && parameter["schema"].(object)["type"] == "array"
	})
}

func sortedKeys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
