package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"platform/flowcontrol"
	"platform/internal/cluster/fabric"
	"platform/partition/machine"
)

// lane is a scope with a low concurrency limit.
const (
	limitedScope = "lane"
	scopeLimit   = 2
)

// ruleTable is a partition.RuleSource.
type ruleTable struct {
	mu      sync.Mutex // covers the fields below
	book    *flowcontrol.Book
	changed chan struct{} // closed when there is a newer book
}

// Rules implements partition.RuleSource.
func (t *ruleTable) Rules() (*flowcontrol.Book, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.book, t.changed
}

// set installs the next book: the limit of the scope, which all books have, and further rules.
func (t *ruleTable) set(others ...flowcontrol.Rule) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := &flowcontrol.Book{Version: 1, Rules: append(others, limitOf(limitedScope, flowcontrol.Limits{Concurrency: scopeLimit}))}
	slices.SortFunc(b.Rules, func(x, y flowcontrol.Rule) int { return x.Pattern.Compare(y.Pattern) })
	if t.book != nil {
		b.Version = t.book.Version + 1
		close(t.changed)
	}
	t.book, t.changed = b, make(chan struct{})
}

func limitOf(pattern string, limits flowcontrol.Limits) flowcontrol.Rule {
	p, err := flowcontrol.ParsePattern(pattern)
	if err != nil {
		panic(err)
	}
	return flowcontrol.Rule{Pattern: p, Limits: limits, Version: 1}
}

// changeRules changes the limits of limit keys, up to three times in a row, and removes them at
// the end.
func (s *Sim) changeRules(rng *rand.Rand) func() {
	for range 1 + rng.IntN(3) {
		var rules []flowcontrol.Rule
		for _, pattern := range []string{limitedScope + "/*", limitedScope + "/k1", limitedScope + "/*/*"} {
			switch limits := (flowcontrol.Limits{}); rng.IntN(4) {
			case 0, 1:
				limits.Concurrency = 1 + rng.Uint32N(2)
				rules = append(rules, limitOf(pattern, limits))
			case 2:
				limits.Rate = &flowcontrol.Rate{Count: 1 + rng.Uint32N(3), Period: time.Duration(1+rng.IntN(600)) * time.Millisecond}
				rules = append(rules, limitOf(pattern, limits))
			}
		}
		s.rules.set(rules...)
		s.trace.add("nemesis: rules %v", rules)
	}
	return func() { s.rules.set() }
}

// hold starts some invocations in the scope with a concurrency limit. Some are killed, most of them
// before they run.
func (c *client) hold(ctx context.Context) {
	for range 1 + c.rng.IntN(4) {
		inv := c.invoke(machine.Target{Scope: limitedScope, Service: "Lane", Handler: "hold"}, fmt.Sprintf("%dms", c.rng.IntN(200)))
		if c.rng.IntN(4) > 0 {
			inv.LimitKey = fmt.Sprintf("k%d", c.rng.IntN(4))
			if c.rng.IntN(2) == 0 {
				inv.LimitKey += fmt.Sprintf("/x%d", c.rng.IntN(2))
			}
		}
		if c.submit(ctx, inv) != done || c.rng.IntN(3) > 0 {
			continue
		}
		delay := time.Duration(c.rng.Int64N(int64(300 * time.Millisecond)))
		c.background(func(own *client) {
			pause(ctx, delay)
			owner := own.sim.owner(inv.ID)
			_, _, _ = retry(ctx, own, func(ctx context.Context, d *fabric.Directory) (machine.Outcome, error) {
				return d.Partition(owner).Operate(ctx, &machine.Kill{Target: inv.ID})
			})
		})
	}
}
