package admin

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite docs/openapi.json")

// TestOpenAPIDocumentIsCommitted compares docs/openapi.json with what the server serves.
func TestOpenAPIDocumentIsCommitted(t *testing.T) {
	w := newTestServer(t, nil)
	var served bytes.Buffer
	require.NoError(t, json.Indent(&served, []byte(text(t, w.ask(t, "GET", "/openapi", ""))), "", "  "))
	served.WriteByte('\n')
	const path = "../docs/openapi.json"
	if *update {
		require.NoError(t, os.WriteFile(path, served.Bytes(), 0o644)) //nolint:gosec // nothing secret
	}
	committed, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, served.String(), string(committed), "docs/openapi.json is out of date: run make docs")
}

// TestGroupsOfRoutesAreListed checks that docs/http-api.md lists the first segment of every route.
func TestGroupsOfRoutesAreListed(t *testing.T) {
	text, err := os.ReadFile("../docs/http-api.md")
	require.NoError(t, err)
	for _, r := range newTestServer(t, nil).routes() {
		group, _, _ := strings.Cut(strings.TrimPrefix(r.Path, "/"), "/")
		if group != "internal" { // for clients of this project
			require.True(t, regexp.MustCompile("(?m)^\\|.*`/"+regexp.QuoteMeta(group)+"[`/]").Match(text), "the table of docs/http-api.md lacks /%s", group)
		}
	}
}
