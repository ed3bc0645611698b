package config

// loader applies the sources in order and records the origin of each value.
type loader struct {
	cfg      *Config
	keys     []key
	byPath   map[string]key
	origins  map[string]string // by path, only values that are not defaults
	problems []problem
	warnings []string
	warned   map[int]bool // replacements that a warning was given for
}

func newLoader() *loader {
	cfg := Default()
	list := keys(cfg)
	return &loader{cfg: cfg, keys: list, byPath: index(list), origins: map[string]string{}}
}

func (l *loader) problem(origin, path, what string) {
	l.problems = append(l.problems, problem{origin, path, what})
}

func (l *loader) isSet(path string) bool { return l.origins[path] != "" }

// setText sets a key from the text of a variable or flag. A section takes an inline
// table.
func (l *loader) setText(k key, origin, text string) {
	if k.section() {
		table, err := inlineTable(text)
		if err != nil {
			l.problem(origin, k.path, "expected a table such as { key = \"value\" }, got "+quoted(text))
			return
		}
		l.applyTable(k.path+".", table, func(string) string { return origin })
		return
	}
	if err := setText(k.value, text); err != nil {
		l.problem(origin, k.path, err.Error())
		return
	}
	l.origins[k.path] = origin
}
