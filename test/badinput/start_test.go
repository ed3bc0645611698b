package badinput

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// runServer runs the server binary with a minimal environment until it exits.
func runServer(t *testing.T, dir string, env []string, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	bin, err := harness.Build("platform/cmd/platform-server")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir, cmd.Env = dir, append([]string{"HOME=" + dir}, env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		_, failed := errors.AsType[*exec.ExitError](err)
		require.True(t, failed, err)
	}
	require.NoError(t, ctx.Err(), "the server did not exit")
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// randomPortArgs returns arguments that avoid port conflicts.
func randomPortArgs(args ...string) []string {
	return append([]string{"--bind-ip", "127.0.0.1", "--use-random-ports", "--node-name", "n1"}, args...)
}

func TestRejectedStarts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	dir := t.TempDir()
	target, err := harness.LoadTarget("platform")
	require.NoError(t, err)
	running, err := harness.StartServer(t.Context(), target, harness.ServerOptions{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(running.Kill)
	data := filepath.Join(dir, "data")
	writeFile(t, filepath.Join(dir, "bad.toml"), "node-name = \"x\"\n[worker.invoker]\nabort-timeout = \"soon\"\nabort-timeot = 1\n")
	writeFile(t, filepath.Join(dir, "broken.toml"), "node-name = \n")
	writeFile(t, filepath.Join(dir, "foreign", "n1", "photo.jpg"), "")
	writeFile(t, filepath.Join(dir, "newer", "n1", "FORMAT"), "99\n")
	file := writeFile(t, filepath.Join(dir, "file"), "")

	for name, c := range map[string]struct {
		args []string
		env  []string
		want []string
	}{
		"a value of the wrong kind": {[]string{"-c", "bad.toml"}, nil, []string{"[RT0002]", "bad.toml:3: worker.invoker.abort-timeout: ", `"soon"`}},
		"an unknown key":            {[]string{"-c", "bad.toml"}, nil, []string{"bad.toml:4: worker.invoker.abort-timeot: unknown key; did you mean worker.invoker.abort-timeout?"}},
		"not TOML":                  {[]string{"-c", "broken.toml"}, nil, []string{"[RT0002]", "broken.toml:1:"}},
		"no such file":              {nil, []string{"PLATFORM_CONFIG=nowhere.toml"}, []string{"[RT0002]", "nowhere.toml", "no such file"}},
		"a bad variable":            {nil, []string{"PLATFORM_INGRESS__BIND_PORT=many"}, []string{"[RT0002]", "PLATFORM_INGRESS__BIND_PORT", "ingress.bind-port"}},
		"an unknown flag":           {[]string{"--bind-prot=1"}, nil, []string{"[RT0002]", "did you mean --bind-port?"}},
		"out of range":              {[]string{"--default-num-partitions=0"}, nil, []string{"[RT0002]", "from 1 to 65535"}},
		"a port in use": {[]string{"--bind-ip=127.0.0.1", "--node-name=n1", "--base-dir=x"},
			[]string{fmt.Sprint("PLATFORM_INGRESS__BIND_PORT=", port), "PLATFORM_BIND_PORT=0", "PLATFORM_ADMIN__BIND_PORT=0"},
			[]string{"[RT0004]", fmt.Sprint(port), "ingress.bind-port", "in use"}},
		"an address of somebody else": {[]string{"--bind-ip=203.0.113.1", "--use-random-ports"}, nil, []string{"[RT0004]", "203.0.113.1"}},
		"a directory in use":          {randomPortArgs("--base-dir", data), nil, []string{"[RT0005]", data}},
		"a foreign directory":         {randomPortArgs("--base-dir=foreign"), nil, []string{"[RT0009]", "photo.jpg"}},
		"a newer directory":           {randomPortArgs("--base-dir=newer"), nil, []string{"[RT0009]", "99"}},
		"a file for a directory":      {randomPortArgs("--base-dir", file), nil, []string{"not a directory"}},
		"nowhere to write":            {randomPortArgs("--base-dir=/proc/nowhere"), nil, []string{"/proc/nowhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, exit := runServer(t, dir, c.env, c.args...)
			require.Equal(t, 1, exit, "%s%s", out, errs)
			for _, want := range c.want {
				require.Contains(t, errs, want)
			}
			require.True(t, strings.HasPrefix(errs, "Error: "), errs)
			require.NotContains(t, errs, "goroutine")
		})
	}
	require.NoDirExists(t, filepath.Join(dir, "x"), "a start without a port must not create its directory")
}

// TestDamagedDataDirectories removes parts of a data directory. The server must recreate
// what can be derived from the rest and reject everything else.
func TestDamagedDataDirectories(t *testing.T) {
	for removed, want := range map[string]string{
		"IDENTITY": `holds "log" but no IDENTITY file`,
		"metadata": "holds partitions but no metadata",
		"FORMAT":   "no FORMAT file",
		"state":    "",
		"BALLAST":  "",
	} {
		t.Run(removed, func(t *testing.T) {
			e := newEndpoint(t, serveManifest(t, manifest(serviceManifest("S", "SERVICE", nil, object{"name": "h"}))))
			e.script("S/h", succeed)
			w := newFixture(t, nil)
			w.register(e.URL, nil)
			id := w.send("S/h")
			require.Equal(t, 200, w.attach(id).Status)
			require.NoError(t, w.server.Process.Terminate(testTimeout))
			require.NoError(t, os.RemoveAll(filepath.Join(nodeDataDir(t, w), removed)))
			if want == "" {
				require.NoError(t, w.server.Restart(w.ctx))
				require.Equal(t, 200, w.attach(id).Status)
				return
			}
			require.NoError(t, w.server.Launch())
			select {
			case <-w.server.Process.Exited():
			case <-time.After(testTimeout):
				t.Fatal("the server is still running")
			}
			require.EqualError(t, w.server.Process.Err(), "exit status 1")
			require.Contains(t, w.server.Process.LogTail(1), want)
		})
	}
}

// TestTheConfigurationFileIsReadAgain changes the file of a running server, also to one that is not valid.
func TestTheConfigurationFileIsReadAgain(t *testing.T) {
	file := writeFile(t, filepath.Join(t.TempDir(), "platform.toml"), "default-num-partitions = 1\n")
	e := newEndpoint(t, serveManifest(t, manifest(serviceManifest("S", "SERVICE", nil, object{"name": "h"}))))
	e.script("S/h", respondStatus(500, "", "", ""))
	w := newFixture(t, map[string]string{"CONFIG": file})
	w.register(e.URL, nil)
	await := func(path, text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(string(w.admin("GET", path, nil).raw), text) }, testTimeout, 10*time.Millisecond, text)
	}
	logs := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(w.server.Process.LogTail(100), text) }, testTimeout, 10*time.Millisecond, text)
	}
	writeFile(t, file, `
		default-num-partitions = 2
		log-filter = "info"
		default-journal-retention = "3h"
		[default-retry-policy]
		initial-interval = "10ms"
		max-attempts = 2`)
	await("/services/S", `"journal_retention":"3h"`)
	await("/cluster/log-levels", `"configured_log_filter":"info"`)
	logs("takes effect when the server is restarted")
	w.awaitInvocation(w.send("S/h"), func(i invocation) bool { return i.Status == "paused" })
	require.Equal(t, 2, e.attemptCount("S/h"))

	writeFile(t, file, "default-journal-retention = \"soon\"\n")
	logs("configuration not reloaded, the previous one remains in effect")
	await("/services/S", `"journal_retention":"3h"`)
	require.NoError(t, os.Remove(file))
	logs("cannot be read")
	writeFile(t, file, "")
	await("/services/S", `"journal_retention":"1d"`)
}

// TestPartitionsWithLostLogAreQuarantined removes the log. The server must report it and
// not start over with empty partitions.
func TestPartitionsWithLostLogAreQuarantined(t *testing.T) {
	w := newFixture(t, nil)
	require.NoError(t, w.server.Process.Terminate(testTimeout))
	require.NoError(t, os.RemoveAll(filepath.Join(nodeDataDir(t, w), "log")))
	require.NoError(t, w.server.Launch())
	require.Eventually(t, func() bool {
		_, second, quarantined := strings.Cut(w.server.Process.LogTail(100), "partition replica quarantined")
		return quarantined && strings.Contains(second, "server ready")
	}, testTimeout, 10*time.Millisecond)
	partitions := w.admin("GET", "/cluster/partitions", nil)
	require.Equal(t, 200, partitions.status)
	require.Contains(t, string(partitions.raw), "synced entries or votes are missing")
	require.NotContains(t, string(partitions.raw), `"leader":`)
}

// TestTheOnlyNodeContinuesWithoutALostLog loses the logs of the only node, and lets the
// command that the server names accept that.
func TestTheOnlyNodeContinuesWithoutALostLog(t *testing.T) {
	e := newEndpoint(t, serveManifest(t, manifest(
		serviceManifest("S", "SERVICE", nil, object{"name": "h"}), serviceManifest("O", "VIRTUAL_OBJECT", nil, object{"name": "h"}))))
	e.script("S/h", succeed)
	e.script("O/h", succeed)
	w := newFixture(t, map[string]string{"DEFAULT_NUM_PARTITIONS": "2"})
	w.register(e.URL, nil)
	id := w.send("S/h")
	require.Equal(t, 200, w.attach(id).Status)
	data := nodeDataDir(t, w)
	require.NoError(t, w.server.Process.Terminate(testTimeout))
	require.NoError(t, os.RemoveAll(filepath.Join(data, "log")))
	require.NoError(t, w.server.Launch())
	require.Eventually(t, func() bool {
		_, second, quarantined := strings.Cut(w.server.Process.LogTail(100), "partition replica quarantined")
		return quarantined && strings.Contains(second, "server ready")
	}, testTimeout, 10*time.Millisecond)
	var command [2]string
	require.Eventually(t, func() bool {
		body := string(w.admin("GET", "/cluster/partitions", nil).raw)
		for i := range command {
			command[i] = fmt.Sprintf("platform-server repair accept-loss --group %d --data-dir %s", i+1, data)
			if !strings.Contains(body, command[i]) {
				return false
			}
		}
		return true
	}, testTimeout, 10*time.Millisecond)
	require.NoError(t, w.server.Process.Terminate(testTimeout))

	out, errs, exit := runServer(t, t.TempDir(), nil, "inspect", "--data-dir", data)
	require.Zero(t, exit, errs)
	require.Contains(t, out, "HARDSTATE  incarnation ")
	require.Contains(t, out, "has lost entries")
	_, errs, exit = runServer(t, t.TempDir(), nil, "repair", "accept-loss", "--group", "1", "--data-dir", data)
	require.Equal(t, 1, exit)
	require.Contains(t, errs, "not confirmed, nothing was changed")
	for i := range command {
		out, errs, exit = runServer(t, t.TempDir(), nil, append(strings.Fields(command[i])[1:], "--yes")...)
		require.Zero(t, exit, errs)
		require.Contains(t, out, "Lost: ")
	}
	_, errs, exit = runServer(t, t.TempDir(), nil, "repair", "accept-loss", "--group", "1", "--data-dir", data, "--yes")
	require.Equal(t, 1, exit)
	require.Contains(t, errs, "nothing is missing")

	require.NoError(t, w.server.Restart(w.ctx))
	require.Equal(t, 200, w.attach(id).Status, "the tables have it")
	for key := range 4 { // the keys are in both partitions
		require.Equal(t, 200, w.attach(w.send(fmt.Sprintf("O/%d/h", key))).Status)
	}
	require.NoError(t, w.server.Process.Terminate(testTimeout))
	require.NoError(t, w.server.Restart(w.ctx))
	require.Equal(t, 200, w.attach(id).Status)
}

// nodeDataDir returns the data directory of a node, from its log.
func nodeDataDir(t *testing.T, w *fixture) string {
	_, rest, found := strings.Cut(w.server.Process.LogTail(100), " data=")
	require.True(t, found)
	dir, _, _ := strings.Cut(rest, "\n")
	return dir
}

func TestDumpedConfigurationRoundTrips(t *testing.T) {
	dir := t.TempDir()
	env := []string{"PLATFORM_WORKER__INVOKER__ABORT_TIMEOUT=7s"}
	first, errs, exit := runServer(t, dir, env, "--dump-config", "--cluster-name", "here")
	require.Zero(t, exit, errs)
	require.Contains(t, first, `abort-timeout = "7s"`)
	writeFile(t, filepath.Join(dir, "again.toml"), first)
	second, errs, exit := runServer(t, dir, nil, "--dump-config", "--config-file", "again.toml")
	require.Zero(t, exit, errs)
	plain := func(s string) (lines []string) {
		for line := range strings.Lines(s) {
			value, _, _ := strings.Cut(line, "  # ")
			lines = append(lines, strings.TrimSpace(value))
		}
		return lines
	}
	require.Equal(t, plain(first), plain(second))
}

func TestUnknownVariablesDoNotPreventTheStart(t *testing.T) {
	env := []string{"PLATFORM_BASEDIR=x", "PLATFORM_TEAM=x", "PLATFORM_SERVICE_HOST=10.0.0.1"}
	for stage, args := range map[string][]string{"start": randomPortArgs("--base-dir=/proc/nowhere"), "dump": {"--dump-config"}} {
		out, errs, _ := runServer(t, t.TempDir(), env, args...)
		for _, variable := range []string{"PLATFORM_BASEDIR", "PLATFORM_TEAM"} {
			require.Equal(t, 1, strings.Count(out+errs, variable+" is ignored"), "%s: %s%s", stage, out, errs)
		}
		require.Contains(t, out+errs, "did you mean PLATFORM_BASE_DIR?")
		require.NotContains(t, out+errs, "PLATFORM_SERVICE_HOST")
		require.NotContains(t, out+errs, "RT0002")
	}
}

func TestHelpAndVersion(t *testing.T) {
	for flag, want := range map[string]string{"--help": "--base-dir", "--version": "platform-server "} {
		out, errs, exit := runServer(t, t.TempDir(), []string{"PLATFORM_BIND_PORT=bad"}, flag)
		require.Zero(t, exit)
		require.Empty(t, errs)
		require.Contains(t, out, want)
	}
}

// TestShutdown stops a server that is idle, one with a running invocation, and one that
// gets a second signal while a caller waits.
func TestShutdown(t *testing.T) {
	e := newEndpoint(t, serveManifest(t, manifest(serviceManifest("S", "SERVICE", nil, object{"name": "hang"}))))
	e.script("S/hang", func(x *exchange) { x.replay(); x.head(); <-x.r.Context().Done() })
	w := newFixture(t, map[string]string{"INGRESS__CONCURRENT_API_REQUESTS_LIMIT": "1"})
	w.register(e.URL, nil)
	begin := time.Now()
	signal := func() { require.NoError(t, syscall.Kill(w.server.Process.PID(), syscall.SIGTERM)) }
	ended := func(how string) {
		<-w.server.Process.Exited()
		require.EqualError(t, w.server.Process.Err(), how)
		require.Less(t, time.Since(begin), testTimeout) // it waits for no running invocation
		require.NoError(t, w.server.Restart(w.ctx))
	}
	signal()
	ended("exit status 0")

	id := w.send("S/hang")
	w.awaitInvocation(id, func(i invocation) bool { return i.Status == "running" })
	begin = time.Now()
	signal()
	ended("exit status 0")
	w.awaitInvocation(id, func(i invocation) bool { return i.Status == "running" })

	go func() {
		for { // until it gets the only slot, which the request below may take first
			if a, err := w.server.Client.Attach(w.ctx, id); err != nil || a.Status != 429 {
				return
			}
		}
	}()
	require.Eventually(t, func() bool { // 429 shows that the attach is waiting
		a, err := w.server.Client.Output(w.ctx, id)
		return err == nil && a.Status == 429
	}, testTimeout, 10*time.Millisecond)
	signal()
	require.Eventually(t, func() bool { // it no longer accepts connections, but waits for the caller
		c, err := net.Dial("tcp", strings.TrimPrefix(w.server.Admin(), "http://"))
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, testTimeout, time.Millisecond)
	begin = time.Now()
	signal()
	ended("signal: terminated")
	w.awaitInvocation(id, func(i invocation) bool { return i.Status == "running" })
}
