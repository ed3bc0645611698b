package load

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"platform/test/harness"
	"platform/test/history"
)

const (
	registerAccesses = 300 // per register, so that it can be checked
	registerUnknown  = 8   // maximum per register without a response
)

// registers are objects that several workers use, one after another.
type registers struct {
	name string

	mu      sync.Mutex // covers the fields below
	count   int
	unknown int // in the current register
	all     [][]history.Access
	values  atomic.Int64
}

// next returns the register to use and its number. The caller must record one access.
func (r *registers) next() (key string, number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 || r.count >= registerAccesses || r.unknown >= registerUnknown {
		r.all = append(r.all, nil)
		r.count, r.unknown = 0, 0
	}
	r.count++
	number = len(r.all) - 1
	return fmt.Sprintf("%s-%d", r.name, number), number
}

func (r *registers) record(number int, a history.Access) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[number] = append(r.all[number], a)
	if a.Outcome == history.Unknown && number == len(r.all)-1 {
		r.unknown++
	}
}

// check checks that the accesses to each register are linearizable.
func (r *registers) check(context.Context, *client) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, accesses := range r.all {
		if err := history.CheckRegister(accesses); err != nil {
			return fmt.Errorf("register %s-%d: %w", r.name, i, err)
		}
	}
	return nil
}

// registerClient reads and writes registers.
type registerClient struct {
	*client
	id        int
	registers *registers
	lastSeen  int // last value read
}

func (r *registerClient) step(ctx context.Context) {
	key, number := r.registers.next()
	a := history.Access{Client: r.id}
	path, body := harness.Path("Register", key, "peek"), []byte(nil)
	if kind := rand.IntN(3); kind > 0 {
		a.Change = &history.Change{Value: int(r.registers.values.Add(1))}
		if kind == 2 {
			old := r.lastSeen
			a.Change.If = &old
		}
		path = harness.Path("Register", key, "change")
		body, _ = json.Marshal(a.Change) // cannot fail
	}
	a.Span.Start = time.Now()
	resp, err := r.try(ctx, "register", call(path, body, ""))
	a.Span.End = time.Now()
	a.Outcome = outcome(err)
	if err == nil {
		if a.Got, err = strconv.Atoi(string(resp.Body)); err == nil {
			r.lastSeen = a.Got
		}
	}
	r.registers.record(number, a)
}
