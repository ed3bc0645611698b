package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// applyFile applies a TOML file.
func (l *loader) applyFile(name string) {
	data, err := os.ReadFile(name)
	if err != nil {
		l.problem(name, "", "cannot be read: "+errors.Unwrap(err).Error())
		return
	}
	l.applyTOML(name, data)
}

// applyTOML applies a TOML document; messages refer to it by name.
func (l *loader) applyTOML(name string, data []byte) {
	var table map[string]any
	if err := toml.Unmarshal(data, &table); err != nil {
		origin, what := name, err.Error()
		if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := bad.Position()
			origin = fmt.Sprintf("%s:%d:%d", name, line, column)
		}
		l.problem(origin, "", "not valid TOML: "+strings.TrimPrefix(what, "toml: "))
		return
	}
	lines := keyLines(data)
	l.applyTable("", table, func(path string) string {
		for p := path; ; p = p[:max(0, strings.LastIndexByte(p, '.'))] {
			if line, ok := lines[p]; ok {
				return fmt.Sprintf("%s:%d", name, line)
			}
			if p == "" {
				return name
			}
		}
	})
}

// applyTable applies a decoded table whose keys are below prefix; origin returns where a path was
// written.
func (l *loader) applyTable(prefix string, table map[string]any, origin func(path string) string) {
	spelled := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		path := prefix + kebab(name)
		if other, twice := spelled[path]; twice {
			l.problem(origin(path), path, fmt.Sprintf("given twice, as %s and %s", other, name))
			continue
		}
		spelled[path] = name
		l.applyValue(path, table[name], origin)
	}
}

func (l *loader) applyValue(path string, value any, origin func(path string) string) {
	k, known := l.byPath[path]
	if !known {
		if !l.replaced(origin(path), path, value) && !l.renamed(origin(path), path, value) {
			l.problem(origin(path), path, unknown(path, l.keys))
		}
		return
	}
	if k.section() {
		nested, ok := value.(map[string]any)
		if !ok {
			l.problem(origin(path), path, fmt.Sprintf("expected a section [%s], got %v", path, value))
			return
		}
		l.applyTable(path+".", nested, origin)
		return
	}
	if err := setTOML(k.value, value); err != nil {
		what := err.Error()
		if slices.Contains(secret, path) || isClusters(k.value) {
			what, _, _ = strings.Cut(what, ", got ") // the value
		}
		l.problem(origin(path), path, what)
		return
	}
	l.origins[path] = origin(path)
}

// keyLines returns the line of each key and table of a valid document, by path in
// kebab-case.
func keyLines(data []byte) map[string]int {
	lines := map[string]int{}
	var parser unstable.Parser
	parser.Reset(data)
	table := ""
	for parser.NextExpression() {
		node := parser.Expression()
		switch node.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = notePath(&parser, lines, "", node) + "."
		case unstable.KeyValue:
			noteKeyValue(&parser, lines, table, node)
		}
	}
	return lines
}

// noteKeyValue records the lines of a key and, if its value is an inline table, of the keys in it.
func noteKeyValue(parser *unstable.Parser, lines map[string]int, prefix string, node *unstable.Node) {
	path := notePath(parser, lines, prefix, node)
	if value := node.Value(); value.Kind == unstable.InlineTable {
		for children := value.Children(); children.Next(); {
			noteKeyValue(parser, lines, path+".", children.Node())
		}
	}
}

// notePath records the line of a possibly dotted key and returns its full path.
func notePath(parser *unstable.Parser, lines map[string]int, prefix string, node *unstable.Node) string {
	path := strings.TrimSuffix(prefix, ".")
	for parts := node.Key(); parts.Next(); {
		part := parts.Node()
		path = strings.TrimPrefix(path+"."+kebab(string(part.Data)), ".")
		if _, seen := lines[path]; !seen {
			lines[path] = parser.Shape(part.Raw).Start.Line
		}
	}
	return path
}

func inlineJSON(text string) (map[string]any, error) {
	var table map[string]any
	if err := json.Unmarshal([]byte(text), &table); err != nil {
		return nil, err
	}
	return table, nil
}
