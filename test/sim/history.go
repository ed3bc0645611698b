package sim

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"platform/internal/ids"
)

// operation is one access to a counter, as a client saw it.
type operation struct {
	Client int            `json:"client"`
	Key    string         `json:"key"`
	ID     ids.Invocation `json:"-"`
	Delta  int64          `json:"delta"` // 0: it reads
	Got    int64          `json:"got"`
	Start  time.Duration  `json:"start"`
	End    time.Duration  `json:"end"`
	State  ending         `json:"state"`
	Late   bool           `json:"late"` // its result was learned long after; End is only when the client gave up
}

// String describes the operation.
func (o *operation) String() string {
	what := "reads"
	if o.Delta != 0 {
		what = fmt.Sprintf("adds %d", o.Delta)
	}
	return fmt.Sprintf("%.6f–%.6f client %d %s %s: %s %d", o.Start.Seconds(), o.End.Seconds(), o.Client, what, o.Key, o.State, o.Got)
}

// relay is what is known of one run of Relay/run.
type relay struct {
	made    []string // tokens that its run has made
	seen    []string // tokens that callers have got
	acked   bool
	started bool
}

// history is what clients and services have seen.
type history struct {
	sim *Sim

	mu       sync.Mutex // covers the fields below
	ops      []*operation
	relays   map[string]*relay
	attempts map[string]int
	stamps   map[string]ending
	silent   map[ids.Invocation]bool // waiters whose signal may never have come
	live     map[ids.Invocation]int  // signals that reached running attempts, see lostSignal
}

func (h *history) begin(client int, key string, id ids.Invocation, delta int64) *operation {
	op := &operation{Client: client, Key: key, ID: id, Delta: delta, Start: h.sim.trace.now()}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, op)
	return op
}

func (h *history) end(op *operation, got int64, e ending) {
	h.mu.Lock()
	op.Got, op.State, op.End = got, e, h.sim.trace.now()
	h.mu.Unlock()
	h.sim.trace.add("client: %s", op)
}

func (h *history) relay(name string) *relay {
	if h.relays == nil {
		h.relays = map[string]*relay{}
	}
	r := h.relays[name]
	if r == nil {
		r = &relay{}
		h.relays[name] = r
	}
	return r
}

func (h *history) relayed(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.relay(name)
}

func (h *history) relayEnded(name, token string, e ending) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sim.trace.add("client: relay %s: %s %s", name, e, token)
	if e == done {
		r := h.relay(name)
		r.acked = true
		r.seen = append(r.seen, token)
	}
}

// attempt counts the attempts of a handler.
func (h *history) attempt(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.attempts == nil {
		h.attempts = map[string]int{}
	}
	h.attempts[name]++
	return h.attempts[name]
}

// execute is a side effect.
func (h *history) execute(name string) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.relay(name)
	r.made = append(r.made, fmt.Sprintf("%s#%d", name, len(r.made)+1))
	return []byte(r.made[len(r.made)-1])
}

// woke checks a sleep that is over. Clocks may have been set ahead, and then it may
// have been too short by that.
func (h *history) woke(name string, at time.Time) {
	if early := time.Until(at); early > h.sim.skewed()+2*time.Millisecond {
		h.sim.violate("%s woke up %s before its time", name, early)
	}
}

// unsignalled notes that nobody can say whether a waiter got its signal.
func (h *history) unsignalled(id ids.Invocation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.silent == nil {
		h.silent = map[ids.Invocation]bool{}
	}
	h.silent[id] = true
}

func (h *history) mayWait(id ids.Invocation) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.silent[id]
}

// signalLost is the planted defect lostSignal: what reached an attempt while it ran is
// missing in the replay for the next one.
func (h *history) signalLost(id ids.Invocation, replay bool) bool {
	if !h.sim.planted(lostSignal) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.live == nil {
		h.live = map[ids.Invocation]int{}
	}
	if !replay {
		h.live[id]++
		return false
	}
	lost := h.live[id] == 1
	h.live[id]++
	return lost
}

func (h *history) stamped(name string, e ending) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stamps == nil {
		h.stamps = map[string]ending{}
	}
	h.stamps[name] = e
	h.sim.trace.add("client: stamp %s: %s", name, e)
}

// checkLedgers compares what the ledgers hold with what was asked for: nothing that was
// acknowledged is missing, nothing is there twice, nothing that failed is there.
func (h *history) checkLedgers(entries []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	count := map[string]int{}
	for _, e := range entries {
		count[e]++
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if count[name] > 1 {
			h.sim.violate("doubled: %s is in the ledgers %d times", name, count[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.stamps)) {
		switch e := h.stamps[name]; {
		case e == done && count[name] == 0:
			h.sim.violate("lost: %s was acknowledged", name)
		case e == failed && count[name] > 0:
			h.sim.violate("%s was refused and has happened", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.relays)) {
		r := h.relays[name]
		for _, leg := range []string{"/sent", "/called"} {
			if r.acked && count[name+leg] == 0 {
				h.sim.violate("lost: %s was acknowledged, %s is in no ledger", name, name+leg)
			}
		}
		if len(slices.Compact(slices.Clone(r.seen))) > 1 {
			h.sim.violate("%s has had several results: %v", name, r.seen)
		}
		for _, token := range r.seen {
			if !slices.Contains(r.made, token) {
				h.sim.violate("the result %q of %s was made by no run", token, name)
			}
		}
	}
}
