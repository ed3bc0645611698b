package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// clockPatches build a server whose wall clock has an offset: the number of seconds in
// the file that TEST_CLOCK names, if it exists. Processes of one machine share its clock,
// and a static binary cannot be intercepted by a library, so the patches change the
// standard library.
var clockPatches = []harness.Patch{
	{
		Std: true, File: "time/time.go",
		Old: "func Now() Time {\n	sec, nsec, mono := runtimeNow()\n",
		New: "func Now() Time {\n	sec, nsec, mono := runtimeNow()\n	sec += StepForTests\n",
	},
	{
		Std: true, File: "time/step.go",
		New: "package time\n\n// StepForTests is the offset of the wall clock in seconds.\nvar StepForTests int64\n",
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

// TestSteppedClocks steps the wall clocks of nodes forward and back, by a second to a
// day, while they are leaders or become leaders. No effect may be lost or duplicated, no
// timer may fire early, and none may be delayed, since other nodes have the right time.
// The short form only checks that the patches apply.
func TestSteppedClocks(t *testing.T) {
	if os.Getenv("CLUSTER_CLOCK") == "" {
		for _, p := range clockPatches {
			require.NoError(t, p.Check())
		}
		return
	}
	binary, err := harness.BuildPatched("platform/cmd/platform-server", clockPatches...)
	require.NoError(t, err)
	dir := t.TempDir()
	b := newTestbed(t, testbedOptions{binary: binary, nodeEnv: func(i int) []string {
		return []string{"TEST_CLOCK=" + filepath.Join(dir, strconv.Itoa(i))}
	}})
	b.clockSlack = 300 * time.Millisecond // smaller differences are not detected
	for n := range intSetting(t, "CLUSTER_ROUNDS", 6) {
		step := []time.Duration{time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour, time.Second, -time.Second}[n%6]
		r := b.round(t, fault{name: fmt.Sprintf("clock %s", step), zombies: true, inject: func(ctx context.Context, b *testbed) error {
			return b.stepClock(ctx, dir, n%len(b.Nodes), step)
		}})
		if !r.recovered {
			return
		}
	}
}

// stepClock steps a node's clock, moves leadership to nodes with the right time, and
// then back.
func (b *testbed) stepClock(ctx context.Context, dir string, i int, step time.Duration) error {
	file := filepath.Join(dir, strconv.Itoa(i))
	if err := os.WriteFile(file, strconv.AppendInt(nil, int64(step/time.Second), 10), 0o600); err != nil {
		return err
	}
	harness.Sleep(ctx, 500*time.Millisecond)
	offset, err := b.clockOffset(ctx, i)
	if err != nil {
		return err
	}
	if (offset - step).Abs() > 2*time.Second {
		return fmt.Errorf("the clock of node %d has offset %s, want %s", i+1, offset, step)
	}
	if err := b.jobTime(ctx, i); err != nil {
		return err
	}
	for _, suspended := range []int{(i + 1) % len(b.Nodes), i} { // other nodes take over leadership
		b.targets.MarkFaulty(suspended)
		if err := b.suspendNode(ctx, suspended, 6*time.Second); err != nil {
			return err
		}
		if err := b.awaitRecovery(ctx); err != nil {
			return err
		}
	}
	// The server reads it before the next round.
	err = os.WriteFile(file, []byte("0"), 0o600)
	harness.Sleep(ctx, 100*time.Millisecond)
	return err
}

// jobTime checks that a job that a node creates has the right time: it is for the invocations that were created before.
func (b *testbed) jobTime(ctx context.Context, i int) error {
	body := strings.NewReader(`{"operation": "cancel", "filter": {"service": "none"}}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.Nodes[i].Admin()+"/jobs", body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var job struct {
		CreatedAt time.Time `json:"created_at"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&job); err != nil {
		return err
	}
	if off := time.Until(job.CreatedAt); off.Abs() > 10*time.Second {
		return fmt.Errorf("a job of node %d, %s, has a time that is off by %s", i+1, resp.Status, off)
	}
	return nil
}

// clockOffset returns the difference of a node's wall clock to that of the test, to the second.
func (b *testbed) clockOffset(ctx context.Context, i int) (time.Duration, error) {
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
		return 0, errors.Join(errors.New("no date in the response"), err)
	}
	return time.Until(date), nil
}
