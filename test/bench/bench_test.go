package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"platform/test/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

// TestBenchMeasuresEveryWorkload runs all workloads on a real server, to keep the program
// compatible with it.
func TestBenchMeasuresEveryWorkload(t *testing.T) {
	dir := t.TempDir()
	records := filepath.Join(t.TempDir(), "records")
	profiles := t.TempDir()
	var out, progress bytes.Buffer
	err := run(t.Context(), []string{
		"-profiles", profiles, "-duration", "1s", "-warmup", "20ms", "-dir", dir, "-out", records, "-targets", "platform-p1",
		"-steps", "echo/2,steps:3/2,fanout:3/2,counter:5/4,send:50/4,sleep:5/5,limit:3/8,payload:100000/2,waiting:50/2@3,patch/2,replace/2",
	}, &out, &progress)
	require.NoError(t, err, "%s", &progress)

	raw, err := os.ReadFile(records)
	require.NoError(t, err)
	for line := range bytes.Lines(raw) {
		var r result
		require.NoError(t, json.Unmarshal(line, &r))
		require.Positive(t, r.Operations, "%s", line)
		require.Positive(t, r.Rate, "%s", line)
		require.Positive(t, r.P50, "%s", line)
		require.GreaterOrEqual(t, r.P99, r.P50, "%s", line)
		require.Positive(t, r.Memory, "%s", line)
		require.Contains(t, out.String(), "\n"+r.Step+" ", "a row for each step")
		require.Positive(t, r.Written, "%s", line)
		require.Equal(t, strings.HasPrefix(r.Step, "payload"), r.Amplification > 0, "%s", line)
		require.Equal(t, r.Use > 0, r.Direct > 0, "%s", line)
	}
	require.Equal(t, 11, bytes.Count(raw, []byte("\n")))
	written, err := filepath.Glob(filepath.Join(profiles, "*.pprof"))
	require.NoError(t, err)
	require.Len(t, written, 11)
	profile, err := os.ReadFile(filepath.Join(profiles, "platform-p1-echo-2.pprof"))
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(profile, []byte("\x1f\x8b")), "compressed as profiles are")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "data left behind")
}

// TestBenchWithTLSAndToken measures for less time than a request takes, which is then extended to the first response.
func TestBenchWithTLSAndToken(t *testing.T) {
	var out, progress bytes.Buffer
	err := run(t.Context(), []string{
		"-duration", "1us", "-warmup", "20ms", "-dir", t.TempDir(), "-targets", "platform-secure,platform-unaudited,platform-traced,platform-traced-tenth", "-steps", "echo/2,counter:3/2,patch/1",
	}, &out, &progress)
	require.NoError(t, err, "%s", &progress)
}

// TestTracedTargetsExportSpans requires that what these targets measure happens.
func TestTracedTargetsExportSpans(t *testing.T) {
	endpoint, err := harness.Build("platform/test/bench/service")
	require.NoError(t, err)
	target, err := loadTarget("platform-traced")
	require.NoError(t, err)
	b, err := startTestbed(t.Context(), target, endpoint, t.TempDir(), nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return b.spans.Load() > 0 }, 2*time.Minute, 20*time.Millisecond)
	require.NoError(t, b.stop())
}

func TestBenchRejectsInvalidArguments(t *testing.T) {
	for reason, args := range map[string][]string{
		"invalid arguments":  {"-rounds", "0"},
		"unknown target":     {"-targets", "nobody"},
		"unknown workload":   {"-steps", "nothing"},
		"set NO_SUCH_SERVER": {"-targets", "testdata/unset.json", "-dir", t.TempDir()},
	} {
		var out bytes.Buffer
		require.ErrorContains(t, run(t.Context(), args, &out, &out), reason)
	}
}
