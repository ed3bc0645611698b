package cli

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What an invocation waits for is printed once, also if the summary already names it.
func TestASingleWaitIsPrintedOnce(t *testing.T) {
	const sleep = `{"kind":"sleep","text":"the end of a sleep at noon"}`
	const call = `{"kind":"invocation","id":"inv_1b","text":"the result of inv_1b (S/h, paused)","summary":"It was paused by an operator."}`
	const cycle = `{"kind":"invocation","id":"inv_1b","text":"the result of inv_1b (S/h, paused)","cycle":true}`
	for name, test := range map[string]struct{ summary, details, waits, want string }{
		"in the summary": {"It is suspended, and waits for the end of a sleep at noon.", "", sleep, "  It is suspended, and waits for the end of a sleep at noon.\n"},
		"in a detail":    {"An attempt is in progress.", `{"title":"Handler","text":"The handler is connected and waits for the end of a sleep at noon."}`, sleep, "  An attempt is in progress.\n  The handler is connected and waits for the end of a sleep at noon.\n"},
		"not named":      {"An attempt is in progress.", "", sleep, "  An attempt is in progress.\n  - the end of a sleep at noon\n"},
		"with a reason": {"It waits for the result of inv_1b (S/h, paused).", "", call,
			"  It waits for the result of inv_1b (S/h, paused).\n  - It was paused by an operator.\n"},
		"a cycle": {"It waits for the result of inv_1b (S/h, paused).", "", cycle,
			"  It waits for the result of inv_1b (S/h, paused).\n  - the result of inv_1b (S/h, paused) (a cycle: they wait for each other)\n"},
		"many": {"It waits for 12 results, all of them.", "", strings.Repeat(sleep+",", 11) + sleep, "  It waits for 12 results, all of them.\n" +
			strings.Repeat("  - the end of a sleep at noon\n", 10) + "  - and 2 more\n"},
		"two": {"It waits for the end of a sleep at noon and 1 other result.", "", sleep + "," + cycle, "  It waits for the end of a sleep at noon and 1 other result.\n" +
			"  - the end of a sleep at noon\n  - the result of inv_1b (S/h, paused) (a cycle: they wait for each other)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			a, out := at(t, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"id":"inv_1a","target":"S/h","status":"suspended","summary":"`+test.summary+`","details":[`+test.details+`],"waiting_for":[`+test.waits+`]}`)
			})
			require.NoError(t, a.explainInvocation(t.Context(), "inv_1a", false))
			_, why, _ := strings.Cut(out.String(), "Why\n―――\n")
			require.Equal(t, test.want, why)
		})
	}
}
