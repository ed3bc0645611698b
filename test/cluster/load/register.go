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
	registerAccesses = 300 // on one register, so that it can be checked
	registerUnknown  = 8   // as many may be without an answer
)

// registers are objects that several workers use, one after the other.
type registers struct {
	name string

	mu      sync.Mutex // covers what follows
	count   int
	unknown int // in the present one
	all     [][]history.Access
	values  atomic.Int64
}

// next returns the register to use, and its number. The caller will note one access.
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

func (r *registers) note(number int, a history.Access) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[number] = append(r.all[number], a)
	if a.Outcome == history.Unknown && number == len(r.all)-1 {
		r.unknown++
	}
}

// check looks for an order of the accesses to each register.
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

// registrar reads and writes registers.
type registrar struct {
	*client
	id   int
	to   *registers
	last int // value that it saw last
}

func (r *registrar) step(ctx context.Context) {
	key, number := r.to.next()
	a := history.Access{Client: r.id}
	path, body := harness.Path("Register", key, "peek"), []byte(nil)
	if kind := rand.IntN(3); kind > 0 {
		a.Change = &history.Change{Value: int(r.to.values.Add(1))}
		if kind == 2 {
			old := r.last
			a.Change.If = &old
		}
		path = harness.Path("Register", key, "change")
		body, _ = json.Marshal(a.Change) // numbers only
	}
	a.Span.Start = time.Now()
	answer, err := r.once(ctx, "register", call(path, body, ""))
	a.Span.End = time.Now()
	a.Outcome = outcome(err)
	if err == nil {
		if a.Got, err = strconv.Atoi(string(answer.Body)); err == nil {
			r.last = a.Got
		}
	}
	r.to.note(number, a)
}
