package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// steppable makes a server whose wall clock is off by the number of seconds in the
// file that TEST_CLOCK names, if there is such a file. A machine has one clock
// for all its processes, and a static binary cannot be lied to by a library, so the
// standard library that it is built with does it.
var steppable = []harness.Patch{
	{
		Std: true, File: "time/time.go",
		Old: "func Now() Time {\n	sec, nsec, mono := runtimeNow()\n",
		New: "func Now() Time {\n	sec, nsec, mono := runtimeNow()\n	sec += StepForTests\n",
	},
	{
		Std: true, File: "time/step.go",
		New: "package time\n\n// StepForTests is by how many seconds the wall clock is wrong.\nvar StepForTests int64\n",
	},
	{File: "cmd/platform-server/step.go", New: `package main

import (
	"os"
	"strconv"
	"time"
)

func init() {
	read := func() {
		if raw, err := os.ReadFile(os.Getenv("TEST_CLOCK")); err == nil {
			time.StepForTests, _ = strconv.ParseInt(string(raw), 10, 64)
		}
	}
	read()
	go func() {
		for {
			time.Sleep(20 * time.Millisecond)
			read()
		}
	}()
}
`},
}

// TestSteppedClocks steps the wall clocks of nodes, which are then leaders or become
// leaders, forward and back by seconds and by a day. Nothing may be lost or happen
// twice, no timer may fire early, and none may be held up: the other nodes know what
// time it is. The short form only sees to it that such a server can still be built.
func TestSteppedClocks(t *testing.T) {
	if os.Getenv("CLUSTER_CLOCK") == "" {
		for _, p := range steppable {
			require.NoError(t, p.Check())
		}
		return
	}
	binary, err := harness.BuildPatched("platform/cmd/platform-server", steppable...)
	require.NoError(t, err)
	dir := t.TempDir()
	b := newBed(t, bedOptions{binary: binary, environ: func(i int) []string {
		return []string{"TEST_CLOCK=" + filepath.Join(dir, strconv.Itoa(i))}
	}})
	b.slack = 300 * time.Millisecond // below that clocks need not be told apart
	for n := range number(t, "CLUSTER_ROUNDS", 6) {
		step := []time.Duration{time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour, time.Second, -time.Second}[n%6]
		r := b.round(t, fault{name: fmt.Sprintf("clock %s", step), zombies: true, inject: func(ctx context.Context, b *bed) error {
			return b.stepClock(ctx, dir, n%len(b.Nodes), step)
		}})
		if !r.whole {
			return
		}
	}
}

// stepClock steps a node's clock, lets another node's clock be right when it takes
// over, and then that one take over in turn.
func (b *bed) stepClock(ctx context.Context, dir string, i int, step time.Duration) error {
	file := filepath.Join(dir, strconv.Itoa(i))
	if err := os.WriteFile(file, strconv.AppendInt(nil, int64(step/time.Second), 10), 0o600); err != nil {
		return err
	}
	pause(ctx, 500*time.Millisecond)
	off, err := b.clockOff(ctx, i)
	if err != nil {
		return err
	}
	if (off - step).Abs() > 2*time.Second {
		return fmt.Errorf("the clock of node %d is off by %s and not by %s", i+1, off, step)
	}
	for _, leave := range []int{(i + 1) % len(b.Nodes), i} { // others lead meanwhile
		b.nodes.Trouble(leave)
		if err := b.pauseNode(ctx, leave, 6*time.Second); err != nil {
			return err
		}
		if err := b.mend(ctx); err != nil {
			return err
		}
	}
	// Read again by the server before the next round.
	err = os.WriteFile(file, []byte("0"), 0o600)
	pause(ctx, 100*time.Millisecond)
	return err
}

// clockOff is by how much a node's wall clock differs from ours, to the second.
func (b *bed) clockOff(ctx context.Context, i int) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.Nodes[i].Admin()+"/health", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	date, err := http.ParseTime(resp.Header.Get("date"))
	if err != nil {
		return 0, errors.Join(errors.New("no date in the answer"), err)
	}
	return time.Until(date), nil
}
