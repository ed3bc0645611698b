package config

import (
	"encoding"
	"reflect"
	"strings"

	"platform/internal/suggest"
)

// key is a value of the configuration or a section of values.
type key struct {
	path  string // dotted name in TOML
	help  string
	value reflect.Value // settable; a struct for sections
}

// section reports whether the key holds other keys.
func (k key) section() bool { return isSection(k.value.Type()) }

// root reports whether the key is outside all sections.
func (k key) root() bool { return !strings.Contains(k.path, ".") }

// variable returns the environment variable of the key.
func (k key) variable() string {
	name := strings.ReplaceAll(strings.ReplaceAll(k.path, ".", "__"), "-", "_")
	return variablePrefix + strings.ToUpper(name)
}

// keys lists every key of cfg in the order of the struct, each section before its
// content and all plain values of a section before its sub-sections.
func keys(cfg *Config) []key { return appendKeys(nil, "", reflect.ValueOf(cfg).Elem()) }

func appendKeys(list []key, prefix string, section reflect.Value) []key {
	var nested []key
	for field, value := range section.Fields() {
		if field.Anonymous {
			list = appendKeys(list, prefix, value)
			continue
		}
		k := key{path: prefix + field.Tag.Get("key"), help: field.Tag.Get("help"), value: value}
		if k.section() {
			nested = append(nested, k)
		} else {
			list = append(list, k)
		}
	}
	for _, k := range nested {
		list = appendKeys(append(list, k), k.path+".", k.value)
	}
	return list
}

func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// index maps the dotted names to their keys.
func index(list []key) map[string]key {
	byPath := make(map[string]key, len(list))
	for _, k := range list {
		byPath[k.path] = k
	}
	return byPath
}

// kebab turns the snake_case spelling of a key into the documented one.
func kebab(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }

// nearest returns the key to suggest for an unknown path: a similar spelling, or the same name in
// another section; "" if there is none.
func nearest(path string, list []key) string {
	best, bestDistance, bestWhole := "", len(path)/3+1, 0
	for _, k := range list {
		whole := suggest.Distance(path, k.path)
		d := min(whole, suggest.Distance(last(path), last(k.path))+1)
		if d < bestDistance || d == bestDistance && best != "" && whole < bestWhole {
			best, bestDistance, bestWhole = k.path, d, whole
		}
	}
	return best
}

func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
