package cli

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATargetSelectsItsOnlyInvocation(t *testing.T) {
	const one, two = `{"id":"inv_1a"}`, `{"id":"inv_1a"},{"id":"inv_1b"}`
	for name, c := range map[string]struct{ arg, open, all, id, failure string }{
		"id":                     {"inv_1c", "", "", "inv_1c", ""},
		"one unfinished of many": {"Orders/o4", one, two, "inv_1a", ""},
		"one completed":          {"Orders/o4/", "", one, "inv_1a", ""},
		"many unfinished":        {"Orders/o4", two, two, "", "Orders/o4 has several invocations"},
		"many completed":         {"Orders/o4", "", two, "", "Orders/o4 has several invocations"},
		"none":                   {"Orders/o4", "", "", "", "Orders/o4 has no invocations"},
		"service":                {"Orders", one, one, "", `"Orders" is not the id of an invocation`},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := at(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/services/Orders":
					_, _ = io.WriteString(w, `{"name":"Orders","ty":"VirtualObject"}`)
				case r.URL.Query().Has("status"):
					_, _ = io.WriteString(w, `{"invocations":[`+c.open+`]}`)
				default:
					_, _ = io.WriteString(w, `{"invocations":[`+c.all+`]}`)
				}
			})
			id, err := a.invocationID(t.Context(), c.arg)
			if c.failure != "" {
				require.EqualError(t, err, c.failure)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.id, id)
		})
	}
}
