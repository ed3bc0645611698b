// Package docs holds the documentation, which the command line client shows.
//
// configuration.md, errors.md and cli.md are generated from the code, and openapi.json is what
// the admin API serves; tests compare them, and `make docs` regenerates them.
package docs

import (
	"embed"
	"slices"
	"strings"
)

//go:embed *.md openapi.json
var files embed.FS

// Topic is a document.
type Topic struct {
	Name  string // as in concepts.md, without the ending
	Title string
	Text  string // Markdown; of openapi, JSON
}

// order is that of reading; what is not listed follows by name.
var order = []string{
	"concepts", "services", "invoke", "flow-control", "events", "operate", "sql", "cluster", "configuration", "security", "metrics", "runbooks", "tracing", "errors", "http-api", "cli", "comparison",
}

// Topics lists the documents in the order of reading.
func Topics() []Topic {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("docs: embedded files cannot be listed: " + err.Error())
	}
	var topics []Topic
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			panic("docs: embedded file cannot be read: " + err.Error())
		}
		name, _, _ := strings.Cut(e.Name(), ".")
		title, _, _ := strings.Cut(string(text), "\n")
		if strings.HasSuffix(e.Name(), ".json") {
			title = "OpenAPI document of the admin API"
		}
		topics = append(topics, Topic{Name: name, Title: strings.TrimPrefix(title, "# "), Text: string(text)})
	}
	slices.SortStableFunc(topics, func(a, b Topic) int { return place(a.Name) - place(b.Name) })
	return topics
}

func place(name string) int {
	if at := slices.Index(order, name); at >= 0 {
		return at
	}
	return len(order)
}

// Find returns the document with a name.
func Find(name string) (Topic, bool) {
	for _, t := range Topics() {
		if t.Name == name {
			return t, true
		}
	}
	return Topic{}, false
}
