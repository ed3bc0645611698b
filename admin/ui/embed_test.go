//go:build !noui

package ui

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The embedded page refers only to files that exist, and has no inline script or style,
// which its own policy forbids.
func TestEmbeddedPage(t *testing.T) {
	h := New(Options{})
	require.NotNil(t, h)
	body := text(t, get(h, "/ui/"))
	references := regexp.MustCompile(`(?:src|href)="/ui/([^"?]+)`).FindAllStringSubmatch(body, -1)
	require.NotEmpty(t, references)
	for _, reference := range references {
		require.Contains(t, h.files, reference[1])
	}
	require.NotRegexp(t, `<style|style=|<script>|onload=|https?://`, body)
	for _, name := range []string{"app.js", "app.css", "chart.js", "editor.js"} {
		answer := get(h, "/ui/"+name, "Accept-Encoding", "gzip")
		require.Equal(t, http.StatusOK, answer.StatusCode)
		require.NotContains(t, answer.Header.Get("Content-Type"), "html", name)
	}
}
