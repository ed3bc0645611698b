package machinetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Names assigns short names to invocations, for dumps.
type Names map[ids.Invocation]string

// Of returns the short name of an invocation, or the text form of its ID if it has none.
func (n Names) Of(id ids.Invocation) string {
	if name, ok := n[id]; ok {
		return name
	}
	return id.String()
}

// Row is one row of a table, as text.
type Row struct{ Key, Text string }

// String returns key and text in one line.
func (r Row) String() string { return r.Key + ": " + r.Text }

// Dump returns all rows of the tables in a fixed order.
func (s *State) Dump(n Names) []Row {
	rows := []Row{{"meta", fmt.Sprintf("epoch=%d clock=%d attempt=%d", s.meta.Epoch, s.meta.Clock, s.meta.Attempt)}}
	if s.meta.Rules != 0 {
		rows[0].Text += fmt.Sprintf(" rules=%d", s.meta.Rules)
	}
	if s.meta.Reevaluation != machine.NotReevaluating {
		rows[0].Text += fmt.Sprintf(" reevaluation=%d", s.meta.Reevaluation)
	}
	add := func(text, key string, args ...any) { rows = append(rows, Row{fmt.Sprintf(key, args...), text}) }
	for _, id := range sortedIDs(s.invocations) {
		add(n.invocation(s.invocations[id].given), "invocation %s", n.Of(id))
	}
	for _, id := range sortedIDs(s.entries) {
		for i, e := range s.entries[id] {
			add(n.entry(e), "journal %s[%d]", n.Of(id), i)
		}
	}
	for _, id := range sortedIDs(s.events) {
		for _, number := range slices.Sorted(maps.Keys(s.events[id])) {
			e := s.events[id][number]
			add(eventText(&e), "event %s[%d]", n.Of(id), number)
		}
	}
	for _, id := range sortedIDs(s.notified) {
		for _, k := range slices.SortedFunc(maps.Keys(s.notified[id]), compareNotifications) {
			add([]string{"pending", "succeeded", "failed", "either"}[s.notified[id][k]], "notified %s %s", n.Of(id), notificationID(k))
		}
	}
	for _, o := range slices.SortedFunc(maps.Keys(s.values), compareObjects) {
		for _, k := range slices.Sorted(maps.Keys(s.values[o])) {
			add(fmt.Sprintf("%q", s.values[o][k]), "state %s %s", object(o), k)
		}
	}
	for _, o := range slices.SortedFunc(maps.Keys(s.promises), compareObjects) {
		for _, k := range slices.Sorted(maps.Keys(s.promises[o])) {
			add(n.promise(s.promises[o][k]), "promise %s %s", object(o), k)
		}
	}
	for _, o := range slices.SortedFunc(maps.Keys(s.locks), compareObjects) {
		l := s.locks[o]
		add(fmt.Sprintf("held by %s, queue %d to %d", n.Of(l.Holder), l.Head, l.Tail), "lock %s", object(o))
	}
	for _, p := range slices.SortedFunc(maps.Keys(s.waiting), func(a, b place) int {
		return cmp.Or(compareObjects(a.Object, b.Object), cmp.Compare(a.Seq, b.Seq))
	}) {
		add(n.Of(s.waiting[p]), "queue %s[%d]", object(p.Object), p.Seq)
	}
	rows = append(rows, s.flow(n)...)
	for _, t := range s.Timers() {
		add("registered", "timer %s", n.timer(t))
	}
	for _, to := range slices.Sorted(maps.Keys(s.sent)) {
		add(fmt.Sprint(s.sent[to]), "sent to %d", to)
		for _, seq := range slices.Sorted(maps.Keys(s.outgoing[to])) {
			add(n.message(s.outgoing[to][seq]), "outgoing to %d[%d]", to, seq)
		}
	}
	for _, from := range slices.Sorted(maps.Keys(s.delivered)) {
		add(fmt.Sprint(s.delivered[from]), "delivered from %d", from)
	}
	return append(rows, s.streams()...)
}

// Changes returns the difference of two dumps: a line for each row that was added or
// changed, and one for each that was deleted.
func Changes(before, after []Row) []string {
	old := map[string]string{}
	for _, r := range before {
		old[r.Key] = r.Text
	}
	var lines []string
	for _, r := range after {
		if previous, ok := old[r.Key]; !ok || previous != r.Text {
			lines = append(lines, r.String())
		}
		delete(old, r.Key)
	}
	for _, r := range before {
		if _, left := old[r.Key]; left {
			lines = append(lines, r.Key+": gone")
		}
	}
	return lines
}

func object(o machine.Object) string {
	if o.Scope != "" {
		return o.Scope + ":" + o.Service + "/" + o.Key
	}
	return o.Service + "/" + o.Key
}

func compareNotifications(a, b journal.NotificationID) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Index, b.Index), strings.Compare(fmt.Sprint(a.Signal), fmt.Sprint(b.Signal)))
}

func notificationID(id journal.NotificationID) string {
	switch {
	case id.Name != "":
		return "signal " + id.Name
	case id.Signal:
		return fmt.Sprintf("signal %d", id.Index)
	}
	return fmt.Sprintf("completion %d", id.Index)
}
