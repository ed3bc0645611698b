package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
)

// checkOperable returns why the server would refuse an operation on an invocation, so that no
// confirmation is requested for it. The status may change until the server gets the request.
func checkOperable(op *operation, inv *client.Invocation) error {
	completed := inv.Status == "completed"
	describe := "`platform invocations describe " + inv.ID + "` shows its result."
	switch {
	case op.name == "pause" && inv.Status == "paused":
		return command.WithHint(fmt.Errorf("%s is already paused%s", inv.ID, pausedBy(inv.LastPause)),
			"`platform invocations resume "+inv.ID+"` resumes it.")
	case completed && slices.Contains([]string{"cancel", "kill", "pause", "resume"}, op.name):
		return command.WithHint(fmt.Errorf("%s of %s has already completed, so there is nothing to %s", inv.ID, inv.Target, op.name), describe)
	case op.name == "resume" && op.deployment == "" && !resumable(inv):
		return command.WithHint(fmt.Errorf("%s is %s, so there is nothing to resume", inv.ID, inv.Status),
			"`platform explain "+inv.ID+"` explains its status.")
	case op.name == "restart-as-new" && inv.TargetServiceType == "workflow":
		return command.WithHint(fmt.Errorf("%s of %s belongs to a workflow: invocations of workflows cannot be restarted", inv.ID, inv.Target),
			"`platform invocations purge "+inv.ID+"` deletes the run of a workflow, so that the same key can run again.")
	case !completed && slices.Contains([]string{"purge", "purge-journal", "restart-as-new"}, op.name):
		return command.WithHint(fmt.Errorf("%s of %s has not completed: it is %s", inv.ID, inv.Target, inv.Status),
			"`platform invocations cancel "+inv.ID+"` ends it; `platform explain "+inv.ID+"` explains its status.")
	}
	return nil
}

// checkRestart returns why an invocation cannot be restarted with its journal up to an entry.
func (a *app) checkRestart(ctx context.Context, op *operation, id string, from int) error {
	inv, _, err := a.Client.Invocation(ctx, id)
	if err != nil {
		return command.HintNotFound(err, "`platform invocations list --status completed` shows those that can be restarted.")
	}
	if err := checkOperable(op, &inv); err != nil {
		return err
	}
	if from < inv.JournalSize || inv.JournalSize == 0 {
		return nil // the server knows whether the journal is kept
	}
	return command.WithHint(fmt.Errorf("the journal of %s has no entry %d: its entries are 0 to %d", id, from, inv.JournalSize-1),
		"`platform invocations describe "+id+"` shows them.")
}

// noSelection is the error of a query that selects nothing.
func (a *app) noSelection(ctx context.Context, op *operation, query string) error {
	scopes := ""
	if len(op.scopes) > 0 {
		scopes = " in scope " + strings.Join(op.scopes, " or ")
	}
	hint := "Only invocations that are " + strings.Join(op.statuses, ", ") + " can be selected. See `platform invocations list`."
	if !strings.HasPrefix(query, "inv_") {
		if _, _, err := a.Client.Service(ctx, service(query)); client.IsNotFound(err) {
			hint = "There is no service " + service(query) + ". " + a.nearestService(ctx, service(query), servicesHint)
		}
	}
	return command.WithHint(fmt.Errorf("no invocation matches %q%s", query, scopes), hint)
}
