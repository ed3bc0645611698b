package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/deploy/process"
	"platform/test/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// onFreePorts returns options with the real binaries on ports nobody uses.
func onFreePorts(t *testing.T) (options, *bytes.Buffer) {
	server, err := harness.Build("platform/cmd/platform-server")
	require.NoError(t, err)
	service, err := harness.Build("platform/deploy/quickstart/greeter")
	require.NoError(t, err)
	ports, err := harness.FreePorts(4)
	require.NoError(t, err)
	out := &bytes.Buffer{}
	t.Setenv("TMPDIR", t.TempDir()) // so that what is left behind shows
	return options{
		server: server, service: service, once: true, out: out,
		ingressPort: ports[0], adminPort: ports[1], nodePort: ports[2], servicePort: ports[3],
	}, out
}

func TestQuickstartShowsTheFirstAnswerAndLeavesNothingBehind(t *testing.T) {
	o, out := onFreePorts(t)
	require.NoError(t, run(t.Context(), o), "%s", out)
	require.Contains(t, out.String(), "found Service Greeter: greet")
	require.Contains(t, out.String(), "World! Nice to meet you.")
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, o.checkPorts(), "a process still holds its port")
}

func TestQuickstartEndsWhenInterrupted(t *testing.T) {
	o, out := onFreePorts(t)
	o.once = false
	ctx, interrupt := context.WithCancel(t.Context())
	o.out = &interrupter{Buffer: out, after: "Everything is up", interrupt: interrupt}
	require.NoError(t, run(ctx, o))
	require.Contains(t, out.String(), "Stopping.")
	require.NoError(t, o.checkPorts(), "a process still holds its port")
}

func TestQuickstartTellsWhenAProcessEndsByItself(t *testing.T) {
	o, _ := onFreePorts(t)
	p, err := process.Start("the server", "", nil, o.server, "--version")
	require.NoError(t, err)
	<-p.Ended()
	require.ErrorContains(t, o.ended(t.Context(), p), "the server ended by itself")

	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, o.ended(interrupted, p))
}

func TestQuickstartNamesThePortThatIsTaken(t *testing.T) {
	o, _ := onFreePorts(t)
	l, err := net.Listen("tcp", address(o.adminPort))
	require.NoError(t, err)
	defer l.Close()
	err = run(t.Context(), o)
	require.ErrorContains(t, err, "meant for the admin API, is not free")
	require.ErrorContains(t, err, "-admin-port")
}

// interrupter interrupts as soon as a text was written.
type interrupter struct {
	*bytes.Buffer
	after     string
	interrupt func()
}

func (w *interrupter) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if bytes.Contains(w.Bytes(), []byte(w.after)) {
		w.interrupt()
	}
	return n, err
}
