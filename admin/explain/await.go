package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"platform/internal/ids"
	"platform/internal/suggest"
	"platform/internal/units"
)

// journalEntry contains the fields of a row of sys_journal that explanations need.
type journalEntry struct {
	kind, name, invoked, promise string
	wakeUp                       time.Time
	completions                  []uint32
	result                       uint32 // completion ID of the result; 0 if there is none
}

// awaited explains the leaves of a tree of futures, given as JSON.
func (e *explainer) awaited(ctx context.Context, tree string) error {
	if tree == "" {
		e.describe()
		return nil
	}
	var future any
	if err := json.Unmarshal([]byte(tree), &future); err != nil {
		return fmt.Errorf("%w: %w", errFuture, err)
	}
	if e.row.Number("pinned_service_protocol_version") >= firstReportingProtocol { // before, only flat sets
		e.combination = combination(future)
		e.WaitsForFirst = e.combination == firstOf
	}
	journal, err := e.journal(ctx)
	if err != nil {
		return err
	}
	return e.leaves(ctx, future, journal)
}

// combination returns how a flat tree of futures combines its leaves, except for the cancel signal:
// with firstOf, allOf or "", if there is only one leaf or the tree is nested.
func combination(future any) string {
	members, _ := future.(map[string]any)
	for name, value := range members { // there is one
		children, _ := value.([]any)
		children = slices.DeleteFunc(slices.Clone(children), awaitsCancel)
		if len(children) == 1 {
			return combination(children[0])
		}
		for _, child := range children {
			if leaf, _ := child.(map[string]any); leaf["Single"] == nil {
				return ""
			}
		}
		switch {
		case len(children) == 0:
		case strings.HasPrefix(name, "First"):
			return firstOf
		case strings.HasPrefix(name, "All"):
			return allOf
		}
	}
	return ""
}

// How results are combined, in words for their number.
const (
	firstOf = "the first of %d results"
	allOf   = "%d results, all of them"
)

// awaitsCancel reports whether a future is the cancel signal, which every handler awaits.
func awaitsCancel(future any) bool {
	members, _ := future.(map[string]any)
	leaf, _ := members["Single"].(map[string]any)
	return leaf["SignalIndex"] == float64(1)
}

// leaves walks a tree of futures. A node is an object with one member, whose value is a leaf or a
// list of trees.
func (e *explainer) leaves(ctx context.Context, future any, journal []journalEntry) error {
	members, isObject := future.(map[string]any)
	if !isObject {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name == "Single" {
			if err := e.leaf(ctx, members[name], journal); err != nil {
				return err
			}
			continue
		}
		list, _ := members[name].([]any)
		for _, child := range list {
			if err := e.leaves(ctx, child, journal); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *explainer) leaf(ctx context.Context, value any, journal []journalEntry) error {
	leaf, _ := value.(map[string]any)
	if name, ok := leaf["SignalName"]; ok {
		e.waits(ForSignal, fmt.Sprint(name), "the signal %v", name)
		e.next("Send it: `platform signals send %s %s <value>`", e.ID, suggest.Word(fmt.Sprint(name)))
	}
	if index, ok := leaf["SignalIndex"].(float64); ok {
		e.signal(uint32(index))
	}
	if id, ok := leaf["CompletionId"].(float64); ok {
		return e.completion(ctx, uint32(id), journal)
	}
	return nil
}

// signal explains a numbered signal: the cancel signal, or an awakeable.
func (e *explainer) signal(index uint32) {
	id, err := ids.ParseInvocation(e.ID)
	if err != nil || index < ids.FirstAwakeable {
		if index > 1 { // every handler awaits the cancel signal
			e.waits(ForSignal, fmt.Sprint(index), "the signal %d", index)
		}
		return
	}
	awakeable := ids.Awakeable{Invocation: id, Signal: index}.String()
	e.waits(ForAwakeable, awakeable, "the awakeable %s", awakeable)
	e.next("Resolve it: `platform awakeables resolve %s <value>`", awakeable)
}

func (e *explainer) completion(ctx context.Context, id uint32, journal []journalEntry) error {
	for i := range journal {
		if id != 0 && slices.Contains(journal[i].completions, id) {
			return e.command(ctx, &journal[i])
		}
	}
	e.waits(ForCommand, "", "a result that its journal does not name (completion %d)", id)
	return nil
}

// command explains what the completion of a command depends on.
func (e *explainer) command(ctx context.Context, entry *journalEntry) error {
	switch entry.kind {
	case "Sleep":
		e.waits(ForSleep, "", "the end of a sleep at %s", e.when(entry.wakeUp))
		e.WaitingFor[len(e.WaitingFor)-1].Until = &entry.wakeUp
		e.next("Nothing: it continues automatically.")
	case "GetPromise", "PeekPromise":
		e.waits(ForPromise, entry.promise, "the promise %s of the workflow", entry.promise)
		e.next("Another handler of the workflow completes the promise.")
	case "Call", "OneWayCall", "AttachInvocation", "GetInvocationOutput":
		if entry.invoked == "" {
			e.waits(ForInvocation, "", "the result of %s", commandWords(entry.kind))
			return nil
		}
		status, err := e.statusOf(ctx, entry.invoked)
		if err != nil {
			return err
		}
		e.waits(ForInvocation, entry.invoked, "the result of %s%s", entry.invoked, status)
		if e.callees++; e.callees <= maxCalleeSteps {
			e.next("`platform explain %s` shows what it waits for.", entry.invoked)
		}
	case "Run":
		e.waits(ForRun, entry.name, "the result of the step %q, which its own process executes", entry.name)
	default:
		e.waits(ForCommand, entry.name, "%s", strings.TrimSpace("the result of "+commandWords(entry.kind)+" "+entry.name))
	}
	return nil
}

// commandWords describes a journal command.
func commandWords(kind string) string {
	switch kind {
	case "Call":
		return "a call"
	case "OneWayCall":
		return "a one-way call"
	case "AttachInvocation":
		return "an invocation that it attached to"
	case "GetInvocationOutput":
		return "a request for the output of an invocation"
	case "GetLazyState", "GetEagerState":
		return "reading the state entry"
	case "GetLazyStateKeys", "GetEagerStateKeys":
		return "reading the names of its state entries"
	case "CompletePromise":
		return "completing the promise"
	}
	return "the command " + kind
}

// statusOf describes the target and status of another invocation, "" if it is unknown or not
// visible. It reads at most maxCallees invocations.
func (e *explainer) statusOf(ctx context.Context, id string) (string, error) {
	if len(e.WaitingFor) >= maxCallees {
		return "", nil
	}
	rows, err := e.reader.Query(ctx, "SELECT target, status, target_service_name, scope FROM sys_invocation WHERE id = "+quote(id))
	if err != nil || len(rows) == 0 || !e.reader.Visible(rows[0].Text("target_service_name"), rows[0].Text("scope")) {
		return "", err
	}
	return fmt.Sprintf(" (%s, %s)", rows[0].Text("target"), rows[0].Text("status")), nil
}

// maxCallees limits the number of called invocations whose status is read.
const maxCallees = 20

// maxCalleeSteps limits the number of called invocations that are suggested to be explained.
const maxCalleeSteps = 3

// lite contains the fields of entry_lite_json that explanations need.
type lite struct {
	Notification struct {
		Completion map[string]struct {
			ID uint32 `json:"completion_id"`
		}
		Signal struct {
			ID struct{ Index uint32 } `json:"id"`
		}
	}
	Command map[string]struct {
		CompletionID uint32          `json:"completion_id"`
		Result       uint32          `json:"result_completion_id"`
		IDCompletion uint32          `json:"invocation_id_completion_id"`
		Target       json.RawMessage `json:"target"`
	}
}

// uncompleted lists the commands of a running invocation without a completion. The handler may be
// waiting for these if the SDK does not report what it awaits.
func (e *explainer) uncompleted(ctx context.Context) error {
	rows, err := e.reader.Query(ctx, "SELECT entry_lite_json FROM sys_journal WHERE id = "+quote(e.ID)+" AND entry_type LIKE 'Notification: %'")
	if err != nil {
		return err
	}
	answered, signalled := map[uint32]bool{0: true}, map[uint32]bool{}
	for _, row := range rows {
		var entry lite
		if json.Unmarshal([]byte(row.Text("entry_lite_json")), &entry) == nil {
			for _, completion := range entry.Notification.Completion {
				answered[completion.ID] = true
			}
			signalled[entry.Notification.Signal.ID.Index] = true
		}
	}
	journal, err := e.journal(ctx)
	if err != nil {
		return err
	}
	open := slices.DeleteFunc(journal, func(entry journalEntry) bool { return answered[entry.result] })
	if len(open) > 0 {
		e.detail(journalDetail, "The handler does not report what it waits for. %s not completed in its journal.", are(len(open), "command"))
	}
	for i := range open[:min(len(open), maxUncompleted)] {
		if err := e.command(ctx, &open[i]); err != nil {
			return err
		}
	}
	if more := len(open) - maxUncompleted; more > 0 {
		e.waits(ForCommand, "", "%s", units.Counted(more, "other command"))
	}
	// Only a sleep may be open besides: the timeout of an awakeable.
	if !slices.ContainsFunc(open, func(entry journalEntry) bool { return entry.kind != "Sleep" }) {
		e.unreportedAwakeable(signalled, len(open) == 0)
	}
	if started := e.row.Time("last_start_at"); len(open) == 0 && !started.IsZero() && e.now.Sub(started) > silentAfter {
		e.detail("Handler", "No entry of its journal is open: the handler executes code, or its process no longer responds although its connection is open.")
		e.serviceLog()
		e.next("A handler that sends nothing for the inactivity timeout is asked to suspend, and its attempt is aborted after the abort timeout: `platform services config view %s` shows them.",
			e.row.Text("target_service_name"))
	}
	return nil
}

// are formats a number with its noun and verb.
func are(n int, thing string) string {
	if n == 1 {
		return "1 " + thing + " is"
	}
	return fmt.Sprintf("%d %ss are", n, thing)
}

// silentAfter is the duration of an attempt without an open journal entry after which the handler
// may be stuck.
const silentAfter = time.Minute

// firstReportingProtocol is the first service protocol version in which running handlers report
// what they await.
const firstReportingProtocol = 7

// unreportedAwakeable names the awakeable that a handler may wait for if its journal does not tell
// what it waits for. Before firstReportingProtocol, the server learns of awakeables only when the handler
// suspends; later, SDKs may report an await only with their next message. An SDK numbers awakeables in order.
// giveReason is false if another detail already tells that the handler does not report what it awaits.
func (e *explainer) unreportedAwakeable(signalled map[uint32]bool, giveReason bool) {
	id, err := ids.ParseInvocation(e.ID)
	if err != nil {
		return
	}
	version := e.row.Number("pinned_service_protocol_version")
	reason := "With service protocol " + strconv.Itoa(version) + ", a running handler does not report what it awaits. "
	if version == 0 || version >= firstReportingProtocol { // 0: not pinned before the first step is stored
		if active := e.row.Time("last_active_at"); active.IsZero() || e.now.Sub(active) < quietAfter {
			return
		}
		reason = "The handler has not reported what it awaits, if it awaits anything. "
	}
	if !giveReason {
		reason = ""
	}
	index := uint32(ids.FirstAwakeable)
	for signalled[index] {
		index++
	}
	awakeable := ids.Awakeable{Invocation: id, Signal: index}.String()
	e.detail("Awakeables", "%sIf it waits for an awakeable, the first one that is not completed is %s.", reason, awakeable)
	e.next("If the handler waits for it: `platform awakeables resolve %s <value>`", awakeable)
}

// maxUncompleted limits the number of commands that uncompleted lists.
const maxUncompleted = 5

// journal returns the commands of the invocation with their completion IDs.
func (e *explainer) journal(ctx context.Context) ([]journalEntry, error) {
	rows, err := e.reader.Query(ctx, "SELECT name, invoked_id, promise_name, sleep_wakeup_at, entry_lite_json FROM sys_journal WHERE id = "+quote(e.ID)+" AND entry_type LIKE 'Command: %'")
	if err != nil {
		return nil, err
	}
	var journal []journalEntry
	for _, row := range rows {
		var entry lite
		if json.Unmarshal([]byte(row.Text("entry_lite_json")), &entry) != nil {
			continue
		}
		for kind, c := range entry.Command {
			read := journalEntry{
				kind: kind, name: row.Text("name"), invoked: row.Text("invoked_id"), promise: row.Text("promise_name"),
				wakeUp: row.Time("sleep_wakeup_at"), completions: []uint32{c.CompletionID, c.Result, c.IDCompletion},
				result: max(c.CompletionID, c.Result),
			}
			var target struct{ InvocationId string } //nolint:revive // named as in the table
			if json.Unmarshal(c.Target, &target) == nil && read.invoked == "" {
				read.invoked = target.InvocationId
			}
			journal = append(journal, read)
		}
	}
	return journal, nil
}
