package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"platform/cmd/platform/internal/client"
	"platform/internal/ids"
)

// journalEntry is the part of an entry of sys_journal that explanations use.
type journalEntry struct {
	kind, name, invoked, promise string
	wakeUp                       time.Time
	completions                  []uint32
	result                       uint32 // the completion that ends the command, 0 if there is none
}

// awaited explains the leaves of a tree of futures.
func (e *explainer) awaited(ctx context.Context, tree string) error {
	if tree == "" {
		e.next("`platform invocations describe %s` shows its journal.", e.ID)
		return nil
	}
	var future any
	if err := json.Unmarshal([]byte(tree), &future); err != nil {
		return fmt.Errorf("%w: %w", errFuture, err)
	}
	journal, err := e.journal(ctx)
	if err != nil {
		return err
	}
	e.leaves(ctx, future, journal)
	return nil
}

// leaves walks over a tree of futures: an object with one member, whose value is a
// list of trees, or the leaf.
func (e *explainer) leaves(ctx context.Context, future any, journal []journalEntry) {
	members, isObject := future.(map[string]any)
	if !isObject {
		return
	}
	for name, value := range members {
		if name == "Single" {
			e.leaf(ctx, value, journal)
			continue
		}
		if list, isList := value.([]any); isList {
			for _, child := range list {
				e.leaves(ctx, child, journal)
			}
		}
	}
}

func (e *explainer) leaf(ctx context.Context, value any, journal []journalEntry) {
	leaf, _ := value.(map[string]any)
	for kind, id := range leaf {
		switch kind {
		case "SignalName":
			e.because("- the signal %v", id)
			e.next("Send it: `platform signals send %s %v <value>`", e.ID, id)
		case "SignalIndex":
			e.signal(uint32(float(id)))
		case "CompletionId":
			e.completion(ctx, uint32(float(id)), journal)
		}
	}
}

func float(v any) float64 {
	f, _ := v.(float64)
	return f
}

// signal explains a numbered signal: the cancel signal, or an awakeable.
func (e *explainer) signal(index uint32) {
	id, err := ids.ParseInvocation(e.ID)
	if err != nil || index < ids.FirstAwakeable {
		if index > 1 { // the cancel signal is always awaited
			e.because("- the signal %d", index)
		}
		return
	}
	awakeable := ids.Awakeable{Invocation: id, Signal: index}.String()
	e.because("- the awakeable %s", awakeable)
	e.next("Resolve it: `platform awakeables resolve %s <value>`", awakeable)
}

func (e *explainer) completion(ctx context.Context, id uint32, journal []journalEntry) {
	for _, entry := range journal {
		for _, completion := range entry.completions {
			if completion == id && id != 0 {
				e.command(ctx, &entry)
				return
			}
		}
	}
	e.because("- the completion %d", id)
}

// command explains what the completion of a command depends on.
func (e *explainer) command(ctx context.Context, entry *journalEntry) {
	switch entry.kind {
	case "Sleep":
		e.because("- the end of a sleep at %s", e.when(entry.wakeUp))
		e.next("Nothing: it continues automatically.")
	case "GetPromise", "PeekPromise":
		e.because("- the promise %s of the workflow", entry.promise)
		e.next("Another handler of the workflow completes the promise.")
	case "Call", "OneWayCall", "AttachInvocation", "GetInvocationOutput":
		if entry.invoked == "" {
			e.because("- the result of a %s", entry.kind)
			return
		}
		e.because("- the result of %s%s", entry.invoked, e.statusOf(ctx, entry.invoked))
		e.next("`platform explain %s` shows what it waits for.", entry.invoked)
	case "Run":
		e.because("- the result of run %q", entry.name)
	default:
		e.because("- the result of %s %s", entry.kind, entry.name)
	}
}

// statusOf is the target and status of another invocation, if it is known.
func (e *explainer) statusOf(ctx context.Context, id string) string {
	result, err := e.client.Query(ctx, "SELECT target, status FROM sys_invocation WHERE id = "+client.Quote(id))
	if err != nil || len(result.Rows) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s, %s)", result.Rows[0].Text("target"), result.Rows[0].Text("status"))
}

// uncompleted lists the commands of a running invocation without a completion: what its
// handler may be waiting for, if the SDK does not report it.
func (e *explainer) uncompleted(ctx context.Context) error {
	result, err := e.client.Query(ctx, "SELECT entry_lite_json FROM sys_journal WHERE id = "+client.Quote(e.ID)+" AND entry_type LIKE 'Notification: %'")
	if err != nil {
		return err
	}
	answered, signalled := map[uint32]bool{0: true}, map[uint32]bool{}
	for _, row := range result.Rows {
		var lite struct {
			Notification struct {
				Completion map[string]struct {
					ID uint32 `json:"completion_id"`
				}
				Signal struct {
					ID struct{ Index uint32 } `json:"id"`
				}
			}
		}
		if json.Unmarshal([]byte(row.Text("entry_lite_json")), &lite) == nil {
			for _, completion := range lite.Notification.Completion {
				answered[completion.ID] = true
			}
			signalled[lite.Notification.Signal.ID.Index] = true
		}
	}
	journal, err := e.journal(ctx)
	if err != nil {
		return err
	}
	open := slices.DeleteFunc(journal, func(entry journalEntry) bool { return answered[entry.result] })
	if len(open) > 0 {
		e.because("Not completed in its journal:")
		for _, entry := range open[:min(len(open), maxUncompleted)] {
			e.command(ctx, &entry)
		}
	}
	if more := len(open) - maxUncompleted; more > 0 {
		e.because("- and %s", counted(more, "other command"))
	}
	if !slices.ContainsFunc(open, func(entry journalEntry) bool { return entry.kind == "Run" }) {
		e.unreportedAwakeable(signalled)
	}
	if started := e.row.Time("last_start_at"); len(open) == 0 && !started.IsZero() && time.Since(started) > silentAfter {
		e.because("No entry of its journal is open: the handler executes code, or its process no longer responds although its connection is open.")
		e.next("Check the log of the service. A handler that sends nothing for the inactivity timeout is asked to suspend, and its attempt is aborted after the abort timeout: `platform services config view %s` shows them.",
			e.row.Text("target_service_name"))
	}
	return nil
}

// silentAfter is how long an attempt without an open journal entry may last before explain
// suspects that the handler is stuck.
const silentAfter = time.Minute

// firstReportingProtocol is the service protocol version from which on running handlers
// report what they await.
const firstReportingProtocol = 7

// unreportedAwakeable names the awakeable that a handler probably waits for. Before
// firstReportingProtocol, the server learns of awakeables only when the handler suspends; an
// SDK numbers them in order.
func (e *explainer) unreportedAwakeable(signalled map[uint32]bool) {
	id, err := ids.ParseInvocation(e.ID)
	version := number(e.row.Text("pinned_service_protocol_version"))
	if err != nil || version == 0 || version >= firstReportingProtocol {
		return
	}
	index := uint32(ids.FirstAwakeable)
	for signalled[index] {
		index++
	}
	awakeable := ids.Awakeable{Invocation: id, Signal: index}.String()
	e.because("With service protocol %d, a running handler does not report what it awaits. If it waits for an awakeable, the first one that is not completed is %s.", version, awakeable)
	e.next("To resolve it: `platform awakeables resolve %s <value>`", awakeable)
}

// maxUncompleted bounds the commands that uncompleted lists.
const maxUncompleted = 5

// journal reads the commands of the invocation and their completions.
func (e *explainer) journal(ctx context.Context) ([]journalEntry, error) {
	result, err := e.client.Query(ctx, "SELECT name, invoked_id, promise_name, sleep_wakeup_at, entry_lite_json FROM sys_journal WHERE id = "+client.Quote(e.ID)+" AND entry_type LIKE 'Command: %'")
	if err != nil {
		return nil, err
	}
	var journal []journalEntry
	for _, row := range result.Rows {
		var lite struct {
			Command map[string]struct {
				CompletionID uint32          `json:"completion_id"`
				Result       uint32          `json:"result_completion_id"`
				IDCompletion uint32          `json:"invocation_id_completion_id"`
				Target       json.RawMessage `json:"target"`
			}
		}
		if json.Unmarshal([]byte(row.Text("entry_lite_json")), &lite) != nil {
			continue
		}
		for kind, c := range lite.Command {
			entry := journalEntry{
				kind: kind, name: row.Text("name"), invoked: row.Text("invoked_id"), promise: row.Text("promise_name"),
				wakeUp: row.Time("sleep_wakeup_at"), completions: []uint32{c.CompletionID, c.Result, c.IDCompletion},
				result: max(c.CompletionID, c.Result),
			}
			var target struct{ InvocationId string } //nolint:revive // as the server writes it
			if json.Unmarshal(c.Target, &target) == nil && entry.invoked == "" {
				entry.invoked = target.InvocationId
			}
			journal = append(journal, entry)
		}
	}
	return journal, nil
}
