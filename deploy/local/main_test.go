package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/deploy/process"
	"platform/test/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// onFreePorts returns options with the real server on ports nobody uses.
func onFreePorts(t *testing.T) (options, *screen) {
	server, err := harness.Build("platform/cmd/platform-server")
	require.NoError(t, err)
	out := &screen{}
	t.Setenv("TMPDIR", t.TempDir()) // so that what is left behind shows
	o := options{server: server, nodes: 3, out: out, downTime: 10 * time.Millisecond}
	for range 50 { // the ports of each kind follow one another
		ports, err := harness.FreePorts(3)
		require.NoError(t, err)
		o.ingressPort, o.adminPort, o.nodePort = ports[0], ports[1]+10, ports[2]+20
		if o.checkPorts() == nil {
			return o, out
		}
	}
	t.Fatal("no free ports")
	return o, out
}

// screen is what the program prints, for several goroutines.
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

func TestClusterStartsSurvivesAKillAndLeavesNothingBehind(t *testing.T) {
	o, out := onFreePorts(t)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, o) }()
	said := func(text string) {
		require.Eventually(t, func() bool { return strings.Contains(out.String(), text) }, time.Minute, 10*time.Millisecond, "%q was not said: %s", text, out)
	}
	said("Ctrl-C stops the nodes.")
	health, err := process.Request(t.Context(), http.MethodGet, o.admin(3)+"/cluster-health", "")
	require.NoError(t, err)
	require.Contains(t, string(health), `"members":[1,2,3]`)

	// The pid in the hint is that of a node in the middle.
	_, hint, _ := strings.Cut(out.String(), "kill -9 ")
	var pid int
	for _, digit := range strings.TrimSpace(strings.Split(hint, "\n")[0]) {
		pid = 10*pid + int(digit-'0')
	}
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	said("node n2 ended, it starts again")
	said("node n2 runs again, pid")
	require.Eventually(t, func() bool {
		_, err := process.Request(t.Context(), http.MethodGet, o.admin(2)+"/health", "")
		return err == nil
	}, time.Minute, 20*time.Millisecond)

	interrupt()
	require.NoError(t, <-ended)
	require.Contains(t, out.String(), "Stopping.")
	require.NoError(t, o.checkPorts(), "a process still holds its port")
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestClusterNamesThePortThatIsTaken(t *testing.T) {
	o := options{nodes: 2, ingressPort: 18080, adminPort: 19070}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	o.nodePort = l.Addr().(*net.TCPAddr).Port
	require.ErrorContains(t, run(t.Context(), o), "of node n1 is not free")
	require.ErrorContains(t, run(t.Context(), options{nodes: 10}), "-nodes is 1 to 9")
}
