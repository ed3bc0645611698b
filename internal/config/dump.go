package config

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Dump prints the configuration as TOML that loads to the same configuration, except for
// secrets, which are hidden.
// A comment names the origin of each value that is not the default.
func (l *Loaded) Dump() string { return dump(l.Config, l.origins) }

func dump(cfg *Config, origins map[string]string) string {
	var out strings.Builder
	for _, k := range keys(cfg) {
		if k.section() {
			fmt.Fprintf(&out, "\n[%s]\n", k.path)
			continue
		}
		text, set := textOf(k.value)
		if !set {
			fmt.Fprintf(&out, "# %s is not set\n", last(k.path))
			continue
		}
		if origins[k.path] != "" {
			text = k.withoutSecret(text)
		}
		if !isBare(k.value) {
			text = quoteTOML(text)
		}
		fmt.Fprintf(&out, "%s = %s", last(k.path), text)
		if origin := origins[k.path]; origin != "" {
			out.WriteString("  # " + strings.ReplaceAll(origin, "\n", " "))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// isBare reports whether the text of a value is TOML without quotes.
func isBare(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.Bool, reflect.Float64:
		return true
	case reflect.Int:
		return !isText(v) || v.Int() != int64(Unlimited)
	}
	return false
}

// textOf returns a value's text, and whether there is one.
func textOf(v reflect.Value) (text string, set bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "", false
		}
		return textOf(v.Elem())
	case reflect.Slice:
		if isClusters(v) {
			return clustersText(v.Interface().(KafkaClusters), maps.Clone[map[string]string]), true
		}
		return listText(v.Interface().([]string)), true
	case reflect.Map:
		return tableText(v.Interface().(map[string]string)), true
	case reflect.Float64:
		f := strconv.FormatFloat(v.Float(), 'f', -1, 64)
		if !strings.Contains(f, ".") {
			f += ".0"
		}
		return f, true
	}
	if writer, ok := v.Interface().(encoding.TextMarshaler); ok {
		if printed, err := writer.MarshalText(); err == nil {
			return string(printed), true
		}
	}
	return fmt.Sprint(v.Interface()), true
}

func listText(list []string) string {
	items := make([]string, len(list))
	for i, item := range list {
		items[i] = quoteTOML(item)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func tableText(table map[string]string) string {
	if len(table) == 0 {
		return "{}"
	}
	items := make([]string, 0, len(table))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		items = append(items, quoteTOML(name)+" = "+quoteTOML(table[name]))
	}
	return "{ " + strings.Join(items, ", ") + " }"
}

// quoteTOML prints a basic string; TOML has fewer escapes than Go.
func quoteTOML(text string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&out, `\u%04X`, r)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
	return out.String()
}
