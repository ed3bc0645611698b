package admin

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite docs/openapi.json")

// TestOpenAPIDocumentIsCommitted compares docs/openapi.json with what the server serves.
func TestOpenAPIDocumentIsCommitted(t *testing.T) {
	w := newWorld(t, nil)
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
