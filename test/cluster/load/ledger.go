package load

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"platform/test/harness"
	"platform/test/history"
)

// ledger is one object that workers add to, and their record of that.
type ledger struct {
	key string

	mu   sync.Mutex // covers adds
	adds []history.Add
}

func (l *ledger) note(a history.Add) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adds = append(l.adds, a)
}

// check reads the ledger once everything that was acknowledged should be in it.
func (l *ledger) check(ctx context.Context, c *client) error {
	l.mu.Lock()
	adds := slices.Clone(l.adds)
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	for {
		var entries []history.Entry
		answer, err := c.insist(ctx, "read ledger "+l.key, call(harness.Path("Ledger", l.key, "entries"), nil, ""))
		if err == nil {
			err = answer.Decode(&entries)
		}
		if err != nil {
			return fmt.Errorf("ledger %s: %w", l.key, err)
		}
		if err = history.CheckLedger(adds, entries); err == nil {
			return nil
		}
		// What was sent may still be under way; it is wrong only if it stays away.
		if complete(adds, entries) || !pause(ctx, 50*time.Millisecond) {
			return fmt.Errorf("ledger %s: %w", l.key, err)
		}
	}
}

// complete reports whether all that was acknowledged is there.
func complete(adds []history.Add, entries []history.Entry) bool {
	there := make(map[string]bool, len(entries))
	for _, e := range entries {
		there[e.ID] = true
	}
	return !slices.ContainsFunc(adds, func(a history.Add) bool { return a.Outcome == history.OK && !there[a.ID] })
}

// adder adds to ledgers in one way.
type adder struct {
	*client
	name   string // of its operations
	add    func(ctx context.Context, a *adder, id string)
	to     []*ledger
	repeat bool // with an idempotency key, until it is answered
	rest   int  // steps between two additions: who does not wait for results can be too fast
	steps  int
	n      int
	acks   []time.Time // of answered additions
}

func (a *adder) step(ctx context.Context) {
	if a.steps++; a.steps%(a.rest+1) != 0 {
		return
	}
	a.n++
	a.add(ctx, a, a.name+"."+strconv.Itoa(a.n))
}

// try makes the request, repeated if the adder repeats, and returns what is known
// afterwards.
func (a *adder) try(ctx context.Context, what, id string, by func(path string, body []byte, key string) request, path string, body []byte) (harness.Response, history.Add) {
	entry := history.Add{ID: id, Position: -1, Span: history.Span{Start: time.Now()}}
	var answer harness.Response
	var err error
	if a.repeat {
		if answer, err = a.insist(ctx, what, by(path, body, id)); err != nil {
			entry.Outcome = history.Unknown // an earlier try may have got through
		}
	} else {
		answer, err = a.once(ctx, what, by(path, body, ""))
		entry.Outcome = outcome(err)
	}
	entry.Span.End = time.Now()
	if err == nil {
		a.acks = append(a.acks, entry.Span.End)
	}
	return answer, entry
}

// byCall adds with a call and notes the position in the answer.
func byCall(ctx context.Context, a *adder, id string) {
	answer, entry := a.try(ctx, "call", id, call, harness.Path("Ledger", a.to[0].key, "add"), quote(id))
	entry.Position = position(answer, entry)
	a.to[0].note(entry)
}

func position(answer harness.Response, entry history.Add) int {
	if n, err := strconv.Atoi(string(answer.Body)); err == nil && entry.Outcome == history.OK {
		return n
	}
	return -1
}

// bySend adds with a send.
func bySend(ctx context.Context, a *adder, id string) {
	_, entry := a.try(ctx, "send", id, send, harness.Path("Ledger", a.to[0].key, "add"), quote(id))
	a.to[0].note(entry)
}

// later is the delay of byDelay.
const later = 400 * time.Millisecond

// byDelay adds with a send that is due later, and by slack earlier at most.
func byDelay(slack time.Duration) func(ctx context.Context, a *adder, id string) {
	return func(ctx context.Context, a *adder, id string) {
		_, entry := a.try(ctx, "delayed send", id, send, harness.Path("Ledger", a.to[0].key, "stamp")+"?delay="+later.String(), quote(id))
		entry.Async = true
		entry.Delay = later - slack
		a.to[0].note(entry)
	}
}

// byRelay adds to a ledger, whose handler adds to a second one by a call and to a
// third one by a send.
func byRelay(ctx context.Context, a *adder, id string) {
	body, err := json.Marshal(history.Relay{ID: id, Call: a.to[1].key, Send: a.to[2].key})
	if err != nil {
		panic(err) // two strings
	}
	answer, entry := a.try(ctx, "relay", id, call, harness.Path("Ledger", a.to[0].key, "relay"), body)
	called, sent := entry, entry
	entry.Position = position(answer, entry)
	sent.Async = true
	for i, e := range []history.Add{entry, called, sent} {
		a.to[i].note(e)
	}
}

func quote(s string) []byte { return strconv.AppendQuote(nil, s) }
