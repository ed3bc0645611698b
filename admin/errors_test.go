package admin

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrorsQuoteLongPathsInPart requests each route with a parameter of many bytes, and paths and methods without a route.
func TestErrorsQuoteLongPathsInPart(t *testing.T) {
	w := newTestServer(t, nil)
	const longest = 1000
	long := strings.Repeat("ab-", 3000)
	requests := map[string]bool{"GET /" + long: true, "GET /a/" + long: true, "DELETE /health/" + long: true, "PUT /services/" + long: true, "GET /v9" + long: true, strings.ToUpper(long) + " /health": true}
	parameter := regexp.MustCompile(`[:*][a-z_]*`)
	for _, r := range w.routes() {
		if strings.ContainsAny(r.Path, ":*") && r.Path != "/events" {
			requests[r.Method+" "+parameter.ReplaceAllLiteralString(r.Path, long)] = true
		}
	}
	for request := range requests {
		method, path, _ := strings.Cut(request, " ")
		answer := w.ask(t, method, path, "{}")
		if answer.StatusCode < http.StatusBadRequest {
			answer.Body.Close()
			continue
		}
		var body struct{ Message string }
		content := text(t, answer)
		require.NoError(t, json.Unmarshal([]byte(content), &body), content)
		if len(body.Message) > longest {
			t.Errorf("%s: %d bytes: %s", strings.ReplaceAll(request, long, "<long>"), len(body.Message), strings.ReplaceAll(body.Message, long, "<long>"))
		}
	}
}
