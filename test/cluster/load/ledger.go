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

// ledger is an object that workers add to, with their record of additions.
type ledger struct {
	service, key string

	mu   sync.Mutex // covers adds
	adds []history.Add
}

func (l *ledger) record(a history.Add) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adds = append(l.adds, a)
}

// check reads the ledger until all acknowledged additions are present, and checks it.
func (l *ledger) check(ctx context.Context, c *client) error {
	l.mu.Lock()
	adds := slices.Clone(l.adds)
	l.mu.Unlock()
	pending, cancel := context.WithTimeout(ctx, c.retryTimeout) // ends no read: its error would hide what is missing
	defer cancel()
	for {
		var entries []history.Entry
		resp, err := c.retry(ctx, "read ledger "+l.key, call(harness.Path(l.service, l.key, "entries"), nil, ""))
		if err == nil {
			err = resp.Decode(&entries)
		}
		if err != nil {
			return fmt.Errorf("ledger %s: %w", l.key, err)
		}
		if err = history.CheckLedger(adds, entries); err == nil {
			return nil
		}
		// Asynchronous additions may be pending until the timeout.
		if complete(adds, entries) || !harness.Sleep(pending, 50*time.Millisecond) {
			return fmt.Errorf("ledger %s: %w", l.key, err)
		}
	}
}

// complete reports whether all acknowledged additions are present.
func complete(adds []history.Add, entries []history.Entry) bool {
	present := make(map[string]bool, len(entries))
	for _, e := range entries {
		present[e.ID] = true
	}
	return !slices.ContainsFunc(adds, func(a history.Add) bool { return a.Outcome == history.OK && !present[a.ID] })
}

// adder adds to ledgers in one way.
type adder struct {
	*client
	name    string // prefix of its operation IDs
	addOne  func(ctx context.Context, a *adder, id string)
	ledgers []*ledger
	retries bool // use idempotency keys and retry
	skip    int  // steps to skip after an addition, which limits the rate of sends
	steps   int
	n       int
	acks    []time.Time // times of acknowledged additions
}

func (a *adder) step(ctx context.Context) {
	if a.steps++; a.steps%(a.skip+1) != 0 {
		return
	}
	a.n++
	a.addOne(ctx, a, a.name+"."+strconv.Itoa(a.n))
}

// add makes the request, with retries if configured, and returns the record of the
// addition.
func (a *adder) add(ctx context.Context, what, id string, by func(path string, body []byte, key string) request, path string, body []byte) (harness.Response, history.Add) {
	entry := history.Add{ID: id, Position: -1, Span: history.Span{Start: time.Now()}}
	var resp harness.Response
	var err error
	if a.retries {
		if resp, err = a.retry(ctx, what, by(path, body, id)); err != nil {
			entry.Outcome = history.Unknown // an earlier attempt may have succeeded
		}
	} else {
		resp, err = a.try(ctx, what, by(path, body, ""))
		entry.Outcome = outcome(err)
	}
	entry.Span.End = time.Now()
	if err == nil {
		a.acks = append(a.acks, entry.Span.End)
	}
	return resp, entry
}

// addByCall adds with a call and records the position in the response.
func addByCall(ctx context.Context, a *adder, id string) {
	resp, entry := a.add(ctx, "call", id, call, harness.Path("Ledger", a.ledgers[0].key, "add"), quote(id))
	entry.Position = position(resp, entry)
	a.ledgers[0].record(entry)
}

func position(resp harness.Response, entry history.Add) int {
	if n, err := strconv.Atoi(string(resp.Body)); err == nil && entry.Outcome == history.OK {
		return n
	}
	return -1
}

// addBySend adds with a send.
func addBySend(ctx context.Context, a *adder, id string) {
	_, entry := a.add(ctx, "send", id, send, harness.Path("Ledger", a.ledgers[0].key, "add"), quote(id))
	a.ledgers[0].record(entry)
}

// queuedSends bounds the sends of one adder that wait at a ledger.
const queuedSends = 8

// addBySendInTurn adds with sends and, after queuedSends of them, with a call, which waits until they have
// been executed. On a slow machine sends are accepted faster than they are executed, and others that
// call the ledger would wait longer and longer.
func addBySendInTurn(ctx context.Context, a *adder, id string) {
	if a.n%(queuedSends+1) == 0 {
		addByCall(ctx, a, id)
	} else {
		addBySend(ctx, a, id)
	}
}

// sendDelay is the delay of addByDelayedSend.
const sendDelay = 400 * time.Millisecond

// addByDelayedSend adds with a delayed send, which may be early by clockSlack.
func addByDelayedSend(clockSlack time.Duration) func(ctx context.Context, a *adder, id string) {
	return func(ctx context.Context, a *adder, id string) {
		_, entry := a.add(ctx, "delayed send", id, send, harness.Path("Ledger", a.ledgers[0].key, "stamp")+"?delay="+sendDelay.String(), quote(id))
		entry.Async = true
		entry.Delay = sendDelay - clockSlack
		a.ledgers[0].record(entry)
	}
}

// addByRelay adds to a ledger whose handler adds to a second ledger by a call and to a
// third one by a send.
func addByRelay(ctx context.Context, a *adder, id string) {
	body, err := json.Marshal(history.Relay{ID: id, Call: a.ledgers[1].key, Send: a.ledgers[2].key})
	if err != nil {
		panic(err) // two strings
	}
	resp, entry := a.add(ctx, "relay", id, call, harness.Path("Ledger", a.ledgers[0].key, "relay"), body)
	called, sent := entry, entry
	entry.Position = position(resp, entry)
	sent.Async = true
	for i, e := range []history.Add{entry, called, sent} {
		a.ledgers[i].record(e)
	}
}

func quote(s string) []byte { return strconv.AppendQuote(nil, s) }
