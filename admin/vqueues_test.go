package admin

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/admin/rest"
	"platform/internal/ids"
)

func TestQueuesArePausedAndResumed(t *testing.T) {
	id := ids.OfVQueue("s", "a", "Greeter", "")
	w := newTestServer(t, func(c *Config) { c.FlowControl = true })
	for _, verb := range []string{"pause?reason=a+deploy", "resume"} {
		answer := w.ask(t, "POST", "/vqueues/"+id.String()+"/"+verb, "")
		require.Equal(t, http.StatusAccepted, answer.StatusCode)
		require.Empty(t, text(t, answer))
	}
	require.Equal(t, []string{"pause queue by 192.0.2.1 a deploy", "resume queue"}, w.did)

	w.reject = map[ids.Invocation]error{ids.Invocation(id): rest.ErrNotFound}
	require.Equal(t, http.StatusAccepted, w.ask(t, "POST", "/vqueues/"+id.String()+"/pause", "").StatusCode, "nobody is in the queue any more")
	w.reject[ids.Invocation(id)] = ErrUnavailable
	answer := w.ask(t, "POST", "/v3/vqueues/"+id.String()+"/pause", "")
	require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
	requireError(t, answer, text(t, answer), "", "")
}

func TestQueuesThatCannotBePaused(t *testing.T) {
	on := newTestServer(t, func(c *Config) { c.FlowControl = true })
	known := ids.OfVQueue("s", "", "Greeter", "").String()
	for path, status := range map[string]int{
		"/vqueues/vq_2/pause":                    400,
		"/vqueues/" + someID.String() + "/pause": 400,
		"/vqueues/" + known + "0/resume":         400,
		"/vqueues/" + known + "/stop":            404,
	} {
		answer := on.ask(t, "POST", path, "")
		require.Equal(t, status, answer.StatusCode, path)
		requireError(t, answer, text(t, answer), "", "")
	}
	answer := newTestServer(t, nil).ask(t, "POST", "/vqueues/"+known+"/pause", "")
	require.Equal(t, http.StatusBadRequest, answer.StatusCode)
	requireError(t, answer, text(t, answer), "", "vqueues exist only with flow control")
	require.Empty(t, on.did)
}

func TestScopesArePausedAndResumed(t *testing.T) {
	w := newTestServer(t, func(c *Config) { c.FlowControl = true })
	require.Equal(t, http.StatusAccepted, w.ask(t, "POST", "/limits/scopes/aA/pause", "").StatusCode)
	require.Equal(t, http.StatusAccepted, w.ask(t, "POST", "/limits/scopes/a%41/resume", "").StatusCode)
	require.Equal(t, []string{"pause scope aA by 192.0.2.1 ", "resume scope aA"}, w.did)
	require.Equal(t, http.StatusBadRequest, w.ask(t, "POST", "/limits/scopes/a%2541/pause", "").StatusCode, "its name is a%41, not aA")
	require.Len(t, w.did, 2)
}
