package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

// reportPause distinguishes paused invocations from those whose handler was requested to
// suspend and still executes a step.
func (a *app) reportPause(ctx context.Context, done client.Batch) error {
	pending, err := a.awaitPaused(ctx, done.Succeeded)
	if err != nil { // the pauses are requested, but their state is unknown
		a.Print.Printf("%s Requested the pause of %s\n", a.Print.Green("[OK]:"), units.Counted(len(done.Succeeded), "invocation"))
		a.Say("Their status is unknown: %s", term.Clean(err.Error()))
		return a.refusals(done)
	}
	if n := len(done.Succeeded) - len(pending); n > 0 {
		a.Print.Printf("%s Paused %s\n", a.Print.Green("[OK]:"), units.Counted(n, "invocation"))
	}
	if n := len(pending); n > 0 {
		a.Print.Printf("%s Requested the pause of %s\n", a.Print.Green("[OK]:"), units.Counted(n, "invocation"))
		a.Say("A running handler first finishes its current step. `platform explain %s` shows the state of the pause.", pending[0])
	}
	return a.refusals(done)
}

// awaitPaused waits briefly for pauses to take effect and returns the ids of the pending
// ones.
func (a *app) awaitPaused(ctx context.Context, list []client.BatchSuccess) (pending []string, err error) {
	for deadline := time.Now().Add(a.settleTime); ; {
		if pending, err = a.pausing(ctx, list); err != nil || len(pending) == 0 || time.Now().After(deadline) {
			return pending, err
		}
		select {
		case <-time.After(settleInterval):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// statusChunk is the number of invocations whose status is read in one query, so that queries of
// many remain below the server's limit of 1 MiB.
const statusChunk = 10_000

// pausing returns the ids of invocations whose pause is pending.
func (a *app) pausing(ctx context.Context, list []client.BatchSuccess) (pending []string, err error) {
	for chunk := range slices.Chunk(list, statusChunk) {
		quoted := make([]string, len(chunk))
		for i, s := range chunk {
			quoted[i] = client.Quote(s.ID)
		}
		result, err := a.Client.QueryTable(ctx, fmt.Sprintf("SELECT id FROM sys_invocation WHERE pause_requested AND id IN (%s)", strings.Join(quoted, ", ")), "strong")
		if err != nil {
			return nil, err
		}
		for _, row := range result.Rows {
			pending = append(pending, row.Text("id"))
		}
	}
	return pending, nil
}
