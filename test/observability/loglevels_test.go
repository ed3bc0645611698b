package observability

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// logTail is more lines than a server of these tests logs.
const logTail = 100_000

// life is what a server has logged about an invocation, in order: two components log on their own.
type life struct{ partition, invoker []string }

// lifeOf returns what a server has logged about an invocation.
func lifeOf(t testing.TB, s *harness.Server, id string) (l life) {
	t.Helper()
	for _, text := range strings.Split(s.Process.LogTail(logTail), "\n") {
		var line struct {
			Level, Target string
			Fields        struct{ Message string }
		}
		if !strings.Contains(text, id) || json.Unmarshal([]byte(text), &line) != nil {
			continue
		}
		require.Equal(t, "DEBUG", line.Level, text)
		switch line.Target {
		case "platform/partition":
			l.partition = append(l.partition, strings.TrimPrefix(line.Fields.Message, "invocation "))
		case "platform/invoker":
			l.invoker = append(l.invoker, strings.TrimPrefix(line.Fields.Message, "attempt "))
		default:
			require.Fail(t, "unexpected target", text)
		}
	}
	return l
}

// cli runs the command-line program on a server.
func cli(t testing.TB, s *harness.Server, args ...string) string {
	t.Helper()
	bin, err := harness.Build("platform/cmd/platform")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Env = append(os.Environ(), "PLATFORM_ADMIN_URL="+s.Admin(), "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "platform %s: %s", strings.Join(args, " "), out)
	return string(out)
}

func lifeServices() []restate.ServiceDefinition {
	return []restate.ServiceDefinition{restate.NewService("Life").
		Handler("echo", restate.NewServiceHandler(func(_ restate.Context, in string) (string, error) { return in, nil })).
		Handler("nap", restate.NewServiceHandler(func(ctx restate.Context, millis int) (string, error) {
			return "slept", restate.Sleep(ctx, time.Duration(millis)*time.Millisecond)
		}))}
}

// send sends an invocation and returns its id.
func send(t testing.TB, s *harness.Server, path, body string) string {
	t.Helper()
	r, err := s.Client.Send(t.Context(), path, []byte(body), "content-type", "application/json")
	require.NoError(t, err)
	var sent harness.Sent
	require.NoError(t, r.Decode(&sent), "%s", r.Body)
	return sent.InvocationID
}

// operate changes an invocation with the admin API.
func operate(t testing.TB, s *harness.Server, id, verb string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, s.Admin()+"/invocations/"+id+"/"+verb, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Less(t, answer.StatusCode, 300, verb)
}

// TestDebugLinesFollowTheLogLevel changes the level of a running server with the command-line
// program: the lifecycle of an invocation is logged from then on, and no longer after a reset.
func TestDebugLinesFollowTheLogLevel(t *testing.T) {
	s := harness.ServerFor(t, map[string]string{"LOG_FORMAT": "json", "WORKER__INVOKER__INACTIVITY_TIMEOUT": "10ms"})
	require.NoError(t, s.Register(t.Context(), harness.EndpointFor(t, lifeServices()...), false))
	require.Contains(t, s.Process.LogTail(logTail), `"deployment registered"`)
	call := func() string {
		r, err := s.Client.Call(t.Context(), "Life/echo", []byte(`"a secret"`), "content-type", "application/json")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.Status)
		return r.ID()
	}
	require.Empty(t, lifeOf(t, s, call()))

	const targets = "warn,platform=info,platform/partition=debug,platform/invoker=debug"
	require.Contains(t, cli(t, s, "cluster", "log-level", targets, "--node", "N1"), "n1")
	shown := func(id string, attempts int, partition ...string) {
		t.Helper()
		want := life{partition: partition}
		for range attempts {
			want.invoker = append(want.invoker, "started", "ended")
		}
		require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Equal(c, want, lifeOf(t, s, id)) }, 2*time.Minute, 10*time.Millisecond)
	}
	shown(call(), 1, "created", "admitted", "completed")
	// with returns a completed invocation that has taken a step. On a busy machine, the time during which
	// it would be in that step may be over before.
	with := func(step string, sent func(millis int) string) (id string) {
		for millis := 2000; millis < 200_000; millis *= 4 {
			id = sent(millis)
			var l life
			require.Eventually(t, func() bool {
				l = lifeOf(t, s, id)
				return slices.Contains(l.partition, "completed")
			}, 4*time.Minute, 10*time.Millisecond)
			if slices.Contains(l.partition, step) {
				break
			}
		}
		return id
	}
	id := with("suspended", func(millis int) string { return send(t, s, "Life/nap", strconv.Itoa(millis)) })
	shown(id, 2, "created", "admitted", "suspended", "admitted", "completed")
	id = with("scheduled", func(millis int) string { return send(t, s, fmt.Sprintf("Life/echo?delay=%dms", millis), `"x"`) })
	shown(id, 1, "created", "scheduled", "admitted", "completed")

	id = send(t, s, "Life/nap", `600000`)
	until := []string{"created", "admitted", "suspended"}
	shown(id, 1, until...)
	operate(t, s, id, "pause")
	until = append(until, "paused")
	shown(id, 1, until...)
	operate(t, s, id, "resume")
	until = append(until, "resumed", "admitted", "suspended")
	shown(id, 2, until...)
	operate(t, s, id, "kill")
	until = append(until, "killed")
	shown(id, 2, until...)
	operate(t, s, id, "purge")
	shown(id, 2, append(until, "removed")...)

	cli(t, s, "cluster", "log-level", "--reset")
	require.Empty(t, lifeOf(t, s, call()))
	require.NotContains(t, s.Process.LogTail(logTail), "a secret")
}

// TestLeadershipIsLoggedAtDebug requires a line when a partition gets a leader, and one when the
// leader ends.
func TestLeadershipIsLoggedAtDebug(t *testing.T) {
	s := harness.ServerFor(t, map[string]string{"LOG_FORMAT": "json", "LOG_FILTER": "warn,platform/partition=debug", "DEFAULT_NUM_PARTITIONS": "1"})
	require.NoError(t, s.Stop())
	var lines []string
	for _, text := range strings.Split(s.Process.LogTail(logTail), "\n") {
		for _, message := range []string{"leading partition", "no longer leading partition"} {
			if strings.Contains(text, `"`+message+`"`) {
				require.Contains(t, text, "partition_id")
				require.Contains(t, text, "leader_epoch")
				lines = append(lines, message)
			}
		}
	}
	require.Equal(t, []string{"leading partition", "no longer leading partition"}, lines)
}
