package raftgroup

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestRaftLogsItsStepsAtDebugLevel(t *testing.T) {
	var out bytes.Buffer
	quiet := newRaftLogger(slog.New(slog.NewTextHandler(&out, nil)))
	quiet.Info("entering candidate state")
	require.False(t, quiet.IsInfo())
	require.Empty(t, out.String())
	l := newRaftLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	require.True(t, l.IsDebug())
	l.Info("entering candidate state", "term", 3)
	l.Debug("entering candidate state", "term", 4)
	require.Equal(t, 2, strings.Count(out.String(), "level=DEBUG msg=\"entering candidate state\" component=raft term="))
}

func TestSnapshotsWithoutNewEntriesAreNoErrors(t *testing.T) {
	var out bytes.Buffer
	l := newRaftLogger(slog.New(slog.NewTextHandler(&out, nil)))
	l.Error("failed to take snapshot", "error", raft.ErrNothingNewToSnapshot)
	require.Empty(t, out.String())
	l.Error("failed to take snapshot", "error", errors.New("no space left on device"))
	require.Contains(t, out.String(), "level=ERROR")
}

func TestFollowersThatNeedASnapshotAreNoErrors(t *testing.T) {
	var out bytes.Buffer
	l := newRaftLogger(slog.New(slog.NewTextHandler(&out, nil)))
	l.Error("failed to get log", "index", 1, "error", raft.ErrLogNotFound)
	require.Empty(t, out.String())
	l.Error("failed to get log", "index", 1, "error", errors.New("checksum mismatch"))
	require.Contains(t, out.String(), "level=ERROR")
}

func TestTheFirstElectionAfterAStartIsNoWarning(t *testing.T) {
	const elects = "heartbeat timeout reached, starting election"
	var out bytes.Buffer
	l := newRaftLogger(slog.New(slog.NewTextHandler(&out, nil)))
	l.Warn(elects, "last-leader-addr", raft.ServerAddress(""), "last-leader-id", raft.ServerID(""))
	require.Contains(t, out.String(), "level=INFO")
	out.Reset()
	l = newRaftLogger(slog.New(slog.NewTextHandler(&out, nil)))
	l.Warn(elects, "last-leader-addr", raft.ServerAddress("n1:5122"), "last-leader-id", raft.ServerID("n1/x"))
	require.Contains(t, out.String(), "level=WARN")
}

// Nodes may be stopped together.
func TestLosingOtherNodesIsNoWarningForANodeThatStops(t *testing.T) {
	for _, stopping := range []bool{false, true} {
		var out bytes.Buffer
		l := newRaftLogger(slog.New(slog.NewTextHandler(&out, nil)))
		l.stopping = func() bool { return stopping }
		l.With("peer", "n2").Named("a").Warn("failed to contact quorum of nodes, stepping down")
		l.Warn("heartbeat timeout reached, starting election", "last-leader-id", raft.ServerID("n1/x"))
		want := map[bool]string{false: "WARN", true: "INFO"}[stopping]
		require.Equal(t, 2, strings.Count(out.String(), "level="+want), out.String())
		l.Warn("something else")
		require.Contains(t, out.String(), "level=WARN")
	}
}

func TestRepeatedRaftMessagesAreSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newRaftLogger(slog.New(slog.NewTextHandler(&out, nil)))
		for range 5 {
			l.Named("x").Error("failed to heartbeat to", "peer", "n2")
		}
		l.Error("something else", "index", 7)
		l.Warn("appendEntries rejected, sending older logs")
		time.Sleep(samplePause)
		l.Error("failed to heartbeat to", "peer", "n3")
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, lines, 3)
		require.Contains(t, lines[0], `level=INFO msg="failed to heartbeat to" component=raft peer=n2`)
		require.Contains(t, lines[1], `level=ERROR msg="something else" component=raft index=7`)
		require.Contains(t, lines[2], `peer=n3 repeated=4`)
	})
}

func TestRaftNamesServers(t *testing.T) {
	var out bytes.Buffer
	l := newRaftLogger(slog.New(slog.NewTextHandler(&out, nil)))
	l.Error("failed to appendEntries to", "peer", raft.Server{Suffrage: raft.Nonvoter, ID: "n2/a", Address: "10.0.0.2:5122"})
	require.Contains(t, out.String(), `level=INFO msg="failed to appendEntries to" component=raft peer=n2/a`)
	require.NotContains(t, out.String(), "{")
}

func TestReportsOfAnImpostorAreRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		tr := &Transport{log: slog.New(slog.NewTextHandler(&out, nil)), refusals: newLogSampler()}
		for i := range 5 {
			tr.refused("n2:5122", errors.New("another cluster"))
			tr.refused("", fmt.Errorf("another cluster, %d", i)) // strangers determine the text
		}
		time.Sleep(samplePause)
		tr.refused("n2:5122", errors.New("another cluster"))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, lines, 3)
		require.Contains(t, lines[0], `err="another cluster" address=n2:5122`)
		require.NotContains(t, lines[1], "address")
		require.Contains(t, lines[2], "repeated=4")
	})
}
