package query

import (
	"fmt"
	"strings"
)

// Reference returns the documentation of the tables and columns, in Markdown.
func Reference() string {
	var b strings.Builder
	for _, t := range newCatalog().tables {
		name := t.Name
		if t.Schema != schemaPublic {
			name = t.Schema + "." + t.Name
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| Column | Type | Contents |\n|---|---|---|\n", name, t.Description)
		for _, c := range t.Columns {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Name, c.Type, strings.ReplaceAll(c.Description, "|", `\|`))
		}
	}
	return b.String()
}
