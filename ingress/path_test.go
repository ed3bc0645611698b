package ingress

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestControlCharactersInPathsAreRejected(t *testing.T) {
	f := &fakeInvocations{}
	s := testServer(t, Config{FlowControl: true}, f)
	for _, path := range []string{
		"/Counter/a%00b/add", "/Counter/%0D%0AX-Evil:%201/add", "/Counter/a%0a/add", "/Counter/%1b%5B2J/add", "/Counter/%7f/add", "/Counter/%C2%85/add",
		"/platform/call/Counter/%00/add", "/platform/send/Counter/%00/add", "/platform/scope/a%00/call/Greeter/greet", "/platform/workflow/Order/%0d/attach",
		"/platform/invocation/Greeter/greet/%00/output", "/platform/invocation/Counter/%00/add/k/output",
	} {
		for _, method := range []string{"GET", "POST"} {
			w := do(s, method, path, "")
			require.Contains(t, []int{400, 405}, w.Code, "%s %s", method, path)
			require.NotContains(t, w.Body.String(), "\x00")
		}
	}
	require.Empty(t, f.ids)
	require.Equal(t, 200, do(s, "POST", "/Counter/%E4%BD%A0%20%2F%F0%9F%98%80/add", "").Code)
}
