package dev

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/cmd/platform/internal/term"
	"platform/test/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// screen is what is printed, for several goroutines.
type screen struct {
	mu   sync.Mutex // covers text
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// awaitText waits until a text is printed, or fails when run ends before.
func (s *screen) awaitText(t *testing.T, text string, ended <-chan error) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(s.String(), text) {
		select {
		case err := <-ended:
			require.Fail(t, "it ended", "before %q was printed: %v\n%s", text, err, s)
		case <-tick.C:
		}
	}
}

// realOptions are for the real programs on free ports.
func realOptions(t *testing.T, sample bool) (Options, *screen) {
	server, err := harness.Build("platform/cmd/platform-server")
	require.NoError(t, err)
	t.Setenv("TMPDIR", t.TempDir()) // so that leftover files are detected
	out := &screen{}
	o := Options{
		Server: server, Self: "bin/platform", Nodes: 1, BindIP: "127.0.0.1", RandomPorts: true, DownTime: 10 * time.Millisecond,
		Print: term.New(out, func(string) string { return "" }, false, term.Human), Say: func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }, Err: out,
	}
	if sample {
		client, err := harness.Build("platform/cmd/platform")
		require.NoError(t, err)
		o.Sample = []string{client, "sample", "--listen"}
	}
	return o, out
}

func requireNothingLeft(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestSampleShowsTheFirstResultAndLeavesNothingBehind(t *testing.T) {
	o, out := realOptions(t, true)
	o.Once = true
	require.NoError(t, Run(t.Context(), o), "%s", out)
	require.Contains(t, out.String(), "found Service Greeter: greet")
	require.Contains(t, out.String(), "World! Nice to meet you.")
	require.Regexp(t, `(?m)^Web UI    http://127\.0\.0\.1:\d+/ui/$`, out.String())
	requireNothingLeft(t)
}

func TestAddressOfWebUIHasTokenIfItIsRequired(t *testing.T) {
	n := &node{ip: "0.0.0.0", ports: Ports{Admin: 9070}}
	require.Equal(t, "http://127.0.0.1:9070/ui/", (&running{}).webUI(n))
	require.Equal(t, "http://127.0.0.1:9070/ui/#token=plt_a_b", (&running{token: "plt_a_b"}).webUI(n))
}

func TestSampleRunsUntilInterrupted(t *testing.T) {
	o, out := realOptions(t, true)
	o.Dir = t.TempDir()
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	out.awaitText(t, "Ctrl-C stops everything.", ended)
	require.Contains(t, out.String(), "\n  bin/platform invocations list\n")
	interrupt()
	require.NoError(t, <-ended)
	require.Contains(t, out.String(), "Stopping the server and the sample service")
	require.Contains(t, out.String(), "The data is kept in "+o.Dir)
	require.DirExists(t, o.Dir+"/dev")
	requireNothingLeft(t)
}

func TestAProcessThatEndsByItselfIsReported(t *testing.T) {
	o, out := realOptions(t, true)
	o.Server = o.Sample[0] // which does not run without a command
	err := Run(t.Context(), o)
	require.ErrorContains(t, err, "the server ended by itself: exit status")
	require.ErrorContains(t, err, "a command is missing")
	require.NotContains(t, out.String(), "Everything is up")
	requireNothingLeft(t)
}

// The command that opens a browser may run until that is closed.
func TestAProcessThatEndsIsReportedWhileABrowserIsOpen(t *testing.T) {
	o, out := realOptions(t, false)
	o.Dir = t.TempDir()
	nodes, err := o.newNodes()
	require.NoError(t, err)
	o.OpenUI = func(ctx context.Context, _ string) error {
		require.NoError(t, syscall.Kill(nodes[0].current().PID(), syscall.SIGKILL))
		<-ctx.Done()
		return ctx.Err()
	}
	r := &running{o: o, nodes: nodes, failed: make(chan error, 1)}
	require.ErrorContains(t, r.run(t.Context()), "the server ended by itself")
	require.NotContains(t, out.String(), "could not be opened")
}

func TestClusterSurvivesAKillAndLeavesNothingBehind(t *testing.T) {
	o, out := realOptions(t, false)
	o.Nodes = 3
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	out.awaitText(t, "Ctrl-C stops the nodes.", ended)
	require.Contains(t, out.String(), "\n  bin/platform sample --listen 127.0.0.1:9080\n")
	var admins []string
	for _, word := range strings.Fields(out.String()) {
		if address, ok := strings.CutPrefix(word, "PLATFORM_ADMIN_URL="); ok {
			admins = append(admins, address)
		}
	}
	health, err := request(t.Context(), http.MethodGet, admins[0]+"/cluster-health", "", "")
	require.NoError(t, err)
	require.Contains(t, string(health), `"members":[1,2,3]`)

	_, hint, _ := strings.Cut(out.String(), "kill -9 ")
	var pid int
	_, err = fmt.Sscanf(hint, "%d", &pid)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	out.awaitText(t, "node n2 ended and will be restarted in", ended)
	out.awaitText(t, "Restarted node n2, pid", ended)

	const drain, remove = "/cluster/nodes/n3/drain?force=true", "/cluster/nodes/n3?force=true"
	_, err = request(t.Context(), http.MethodPatch, admins[0]+drain, "", "")
	require.NoError(t, err)
	_, err = request(t.Context(), http.MethodDelete, admins[0]+remove, "", "")
	require.NoError(t, err)
	out.awaitText(t, "node n3 was removed from the cluster and is not restarted", ended)
	require.NotContains(t, out.String(), "Restarted node n3")

	interrupt()
	require.NoError(t, <-ended)
	require.Contains(t, out.String(), "Stopping the nodes")
	requireNothingLeft(t)
}

func TestTheHintForAnEndedProcessFitsItsEnd(t *testing.T) {
	for name, c := range map[string]struct{ script, hint string }{
		"exit":   {"exit 1", "If a port is in use"},
		"signal": {"kill -9 $$", "because memory ran out"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Start("the service", nil, "", nil, "sh", "-c", c.script)
			require.NoError(t, err)
			<-p.Ended()
			var hinted *HintedError
			require.ErrorAs(t, p.Failure(), &hinted)
			require.Contains(t, hinted.Hint, c.hint)
		})
	}
}
