package admin

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A client that makes a change depend on an entity tag must not overwrite the change of another one.
func TestChangesThatDependOnAnEntityTagAreRejected(t *testing.T) {
	w := seeded(t, nil)
	tag := w.ask(t, "GET", "/services/Greeter", "").Header.Get("ETag")
	require.NotEmpty(t, tag)
	requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/services/Greeter", `{"public":false}`))
	for header, value := range map[string]string{"If-Match": tag, "If-Unmodified-Since": "Sat, 29 Oct 1994 19:43:31 GMT"} {
		requireStatus(t, http.StatusPreconditionFailed, w.ask(t, "PATCH", "/services/Greeter", `{"public":true}`, header, value))
		require.False(t, *w.store.Schemas().Services["Greeter"].Options.Public)
	}
	requireStatus(t, http.StatusOK, w.ask(t, "GET", "/services/Greeter", "", "If-Match", tag))
	requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/services/Greeter", `{"public":true}`, "If-Match", "*"))
}
