package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEndpointURLCompletesPartialAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"9080":                    "http://localhost:9080",
		":9080":                   "http://localhost:9080",
		"localhost:9080":          "http://localhost:9080",
		"host":                    "http://host",
		"https://host:8443/path/": "https://host:8443/path/",
		"[::1]:9080":              "http://[::1]:9080",
	} {
		got, err := endpointURL(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "ftp://host", "http://", "http://a b/"} {
		_, err := endpointURL(text)
		require.Error(t, err, text)
	}
}

func TestOneEditApart(t *testing.T) {
	for _, pair := range [][2]string{{"data", "dta"}, {"data", "dataa"}, {"data", "daat"}, {"data", "date"}, {"data", "data"}, {"json", "jsno"}} {
		require.True(t, oneEditApart(pair[0], pair[1]), pair)
		require.True(t, oneEditApart(pair[1], pair[0]), pair)
	}
	for _, pair := range [][2]string{{"data", "dt"}, {"data", "dote"}, {"json", "data"}, {"abcd", "badc"}} {
		require.False(t, oneEditApart(pair[0], pair[1]), pair)
	}
}

func TestWrap(t *testing.T) {
	require.Equal(t, "aa bb\ncccccccc\ndd", wrap("aa  bb cccccccc\ndd", 5))
}

func TestMakePlan(t *testing.T) {
	service := func(name string, revision int) client.Service { return client.Service{Name: name, Revision: revision} }
	got := makePlan(
		[]client.Service{service("A", 1), service("B", 4), service("C", 2)},
		[]client.Service{service("A", 1), service("C", 2)},
		[]client.Service{service("D", 1), service("B", 5), service("A", 2)},
	)
	require.Equal(t, []client.Service{service("D", 1)}, got.added)
	require.Equal(t, []update{{service("A", 1), service("A", 2)}, {service("B", 4), service("B", 5)}}, got.updated)
	require.Equal(t, []client.Service{service("C", 2)}, got.removed)
}

func TestFindServerReportsWhereItLooked(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := findServer()
	require.ErrorContains(t, err, "platform-server is neither in the directory of this program nor in PATH")
	require.Equal(t, "Build it with `make build`, or put it in the same directory.", command.HintFor(err))
}

func TestInvalidOptionsOfDevAreUsageErrors(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // there is no server to start
	for args, message := range map[string]string{
		"--nodes 0":                        "--nodes is 1 to 9, not 0",
		"--nodes 10":                       "--nodes is 1 to 9, not 10",
		"--nodes 3 --bind-ip ::":           "--bind-ip :: stands for all addresses",
		"--ingress-port 0":                 "--ingress-port is 1 to 65535, not 0",
		"--nodes 3 --admin-port 65534":     "--admin-port is 1 to 65533, not 65534",
		"--sample --sample-port 70000":     "--sample-port is 1 to 65535, not 70000",
		"--once":                           "--once needs --sample",
		"--use-random-ports --node-port=x": "--node-port takes",
	} {
		var out bytes.Buffer
		status := Run(t.Context(), append([]string{"dev"}, strings.Fields(args)...), command.System{Out: &out, Err: &out, Getenv: func(string) string { return "" }})
		require.Equal(t, exitUsage, status, args)
		require.Contains(t, out.String(), message)
	}
}

// The duration of a running invocation is that of its attempt, besides the time since the
// first start.
func TestStatusOfARunningInvocationDistinguishesItsStarts(t *testing.T) {
	a := &app{App: &command.App{Print: term.New(&bytes.Buffer{}, func(string) string { return "" }, false, term.Human)}}
	now := time.Now()
	inv := client.Invocation{Status: "running", RunningAt: now.Add(-2 * time.Hour), RetryCount: 3}
	require.Regexp(t, `^running for 2h.*, attempt 3$`, a.statusText(inv), "a server that does not report the start of the attempt")
	inv.LastStartAt = inv.RunningAt.Add(time.Millisecond)
	require.Regexp(t, `^running for 2h.*, attempt 3$`, a.statusText(inv), "the first attempt")
	inv.LastStartAt = now.Add(-time.Hour)
	require.Regexp(t, `^running for 1h.*, attempt 3, first started 2h.* ago$`, a.statusText(inv))
}

// A handler that has suspended after a cancel has got it, or does not await it.
func TestStatusOfACancelledInvocationThatIsSuspended(t *testing.T) {
	a := &app{App: &command.App{Print: term.New(&bytes.Buffer{}, func(string) string { return "" }, false, term.Human)}}
	now := time.Now()
	inv := client.Invocation{Status: "suspended", ModifiedAt: now.Add(-time.Minute), CancelRequestedAt: now}
	require.Regexp(t, `, the handler gets it at its next await point$`, a.statusText(inv))
	inv.ModifiedAt, inv.CancelRequestedAt = inv.CancelRequestedAt, inv.ModifiedAt
	require.Regexp(t, `, which does not end what it waits for now$`, a.statusText(inv))
}

func TestSuggestionsUseTheCommandThatWasStarted(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "platform"), []byte("#!/bin/sh\n"), 0o755))
	t.Setenv("PATH", dir)
	require.Equal(t, "platform", selfCommand("/usr/bin/platform"))
	t.Setenv("PATH", t.TempDir())
	require.Equal(t, "bin/platform", selfCommand("bin/platform"))
}
