package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/config"
	"platform/internal/errcode"
)

func logger(t *testing.T, format Format, filter string) (log *slog.Logger, stdout, stderr *bytes.Buffer) {
	t.Helper()
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	log, _, err := NewLogger(LogOptions{Format: format, Filter: filter}, stdout, stderr)
	require.NoError(t, err)
	return log, stdout, stderr
}

// TestRecordsArePassedOn has a second handler, which gets what the filter admits.
func TestRecordsArePassedOn(t *testing.T) {
	log, stdout, _ := logger(t, Compact, "info,platform/quiet=error")
	var also bytes.Buffer
	log = Also(log, slog.NewTextHandler(&also, nil))
	log.With("component", "platform/quiet").Warn("left out")
	log.With("k", 1).WithGroup("g").Info("kept", "v", 2)
	require.Contains(t, also.String(), "msg=kept k=1 g.v=2")
	require.NotContains(t, also.String(), "left out")
	require.Contains(t, stdout.String(), "kept k=1 g.v=2")
}

func TestLineFormatAndSplitByLevel(t *testing.T) {
	for _, format := range []Format{Pretty, Compact} {
		log, stdout, stderr := logger(t, format, "info")
		log.With("component", "platform/ingress").WithGroup("http").Info("listening\nnow",
			"address", "[::]:8080", "took", 90*time.Second, "empty", "", "text", "a b", slog.Group("g", "x", 1))
		require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO  platform/ingress: listening\\nnow http.address=\[::\]:8080 http.took="1m 30s" http.empty="" http.text="a b" http.g.x=1\n$`, stdout.String())
		require.Empty(t, stderr.String())

		log.Error("cannot start", "err", fmt.Errorf("run: %w", errcode.New(errcode.RT0004, "listen")))
		require.Regexp(t, `^\S+ ERROR platform: cannot start err="\[RT0004\] run: listen" platform.error.code=RT0004\n$`, stderr.String())
	}
}

func TestJSONLines(t *testing.T) {
	log, stdout, _ := logger(t, JSON, "info")
	log.With("component", "platform/node").Info("up", "ports", 3, "ok", true, "err", errors.New("x"), "took", time.Second)
	var line map[string]any
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &line))
	require.Equal(t, "INFO", line["level"])
	require.Equal(t, "platform/node", line["target"])
	require.Equal(t, map[string]any{"message": "up", "ports": 3.0, "ok": true, "err": "x", "took": "1s"}, line["fields"])
	_, err := time.Parse(time.RFC3339Nano, line["timestamp"].(string))
	require.NoError(t, err)
}

func TestColours(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(newLineHandler(&out, true))
	log.Warn("x")
	require.Contains(t, out.String(), "\x1b[33mWARN \x1b[0m")
	require.False(t, wantsColour(&out))
}

func TestFilter(t *testing.T) {
	filter, err := ParseFilter("warn, platform=info,platform/invoker = debug,noise=off,")
	require.NoError(t, err)
	for component, want := range map[string]slog.Level{
		"": slog.LevelInfo, "platform": slog.LevelInfo, "platform/ingress": slog.LevelInfo,
		"platform/invoker": slog.LevelDebug, "platform/invoker/pool": slog.LevelDebug,
		"platforms": slog.LevelWarn, "raft": slog.LevelWarn, "noise": levelOff,
	} {
		require.Equal(t, want, filter.Level(component), component)
	}
	former, err := ParseFilter("warn,restate=info")
	require.NoError(t, err)
	require.Equal(t, slog.LevelInfo, former.Level("platform/invoker"))
	require.Equal(t, slog.LevelInfo, former.Level(""))
	_, err = ParseFilter("platform=loud")
	require.ErrorContains(t, err, `"loud" is not a level`)
	_, err = ParseFilter("info,a\nb\x1b[31m=debug") // other administrators see it in a terminal
	require.ErrorContains(t, err, "control characters")
	for _, level := range config.LogLevels() {
		_, err := ParseFilter(level)
		require.NoError(t, err)
	}
	require.Len(t, config.LogLevels(), len(levels))
	none, err := ParseFilter("")
	require.NoError(t, err)
	require.Equal(t, slog.LevelError, none.Level("platform"))
}

func TestFilterByComponent(t *testing.T) {
	log, stdout, _ := logger(t, Compact, "off,platform/a=debug")
	log.Error("hidden")
	log.With("component", "platform/b").Error("hidden")
	log.With("component", "platform/a").Debug("shown")
	require.Contains(t, stdout.String(), "DEBUG platform/a: shown")
	require.NotContains(t, stdout.String(), "hidden")
}

func TestBadFilterIsAConfigurationError(t *testing.T) {
	_, _, err := NewLogger(LogOptions{Filter: "loud"}, nil, nil)
	require.ErrorContains(t, err, "[RT0002] configuration: log-filter: ")
}

func TestLongValuesAreTruncated(t *testing.T) {
	long := strings.Repeat("ä", maxValueBytes)
	for _, format := range []Format{Compact, JSON} {
		log, stdout, _ := logger(t, format, "info")
		log.Info("x", "key", long, "err", errors.New(long), "short", strings.Repeat("b", maxValueBytes))
		line := stdout.String()
		require.Less(t, len(line), 4*maxValueBytes)
		require.Equal(t, 2, strings.Count(line, fmt.Sprintf("ä… (%d bytes)", len(long))))
		require.Contains(t, line, strings.Repeat("b", maxValueBytes))
	}
}
