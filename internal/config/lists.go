package config

import (
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// splitList parses the list of a variable or flag: TOML or JSON text, the same with bare
// words ([a, b]), or words separated by commas.
func splitList(text string) []string {
	text = strings.TrimSpace(text)
	var parsed struct{ List []string }
	if toml.Unmarshal([]byte("List = "+text), &parsed) == nil {
		return parsed.List
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		text = strings.TrimSuffix(inner, "]")
	}
	list := []string{}
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.Trim(strings.TrimSpace(word), `"'`); word != "" {
			list = append(list, word)
		}
	}
	return list
}

// setMapText parses the table of a variable or flag: TOML or JSON text, or a=b pairs separated
// by commas.
func setMapText(v reflect.Value, text string) error {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		table, err := inlineTable(text)
		if err != nil {
			return mismatch(v, quoted(text))
		}
		return setTable(v, table)
	}
	table := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || strings.TrimSpace(name) == "" {
			return mismatch(v, quoted(text))
		}
		table[strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), `"'`)
	}
	setMap(v, table)
	return nil
}

// inlineTable reads { a = "b" }, or the same as JSON.
func inlineTable(text string) (map[string]any, error) {
	var parsed struct{ Table map[string]any }
	err := toml.Unmarshal([]byte("Table = "+text), &parsed)
	if err != nil {
		return inlineJSON(text)
	}
	return parsed.Table, nil
}
