package listing

import (
	"cmp"
	"slices"

	"platform/partition/machine"
)

// Count is the numbers of invocations of a handler by status and by result.
type Count struct {
	Service, Handler string
	ByStatus         [Statuses]int
	ByResult         [Results]int // of completed ones
}

// Total returns the number of invocations.
func (c *Count) Total() (n int) {
	for _, of := range c.ByStatus {
		n += of
	}
	return n
}

// Tally counts invocations from records. The zero value is ready to use.
type Tally struct{ counts map[[2]string]*Count }

// Add counts an invocation that the filter selects.
func (t *Tally) Add(f *Filter, inv *machine.Invocation, live Live) {
	if !f.Match(inv, live) {
		return
	}
	c := t.of(inv.Target.Service, inv.Target.Handler)
	c.ByStatus[StatusOf(inv, live)]++
	if r := resultOf(inv); r != NoResult {
		c.ByResult[r]++
	}
}

func (t *Tally) of(service, handler string) *Count {
	key := [2]string{service, handler}
	c := t.counts[key]
	if c == nil {
		if t.counts == nil {
			t.counts = map[[2]string]*Count{}
		}
		c = &Count{Service: service, Handler: handler}
		t.counts[key] = c
	}
	return c
}

// Merge adds counts of another partition.
func (t *Tally) Merge(counts []Count) {
	for i := range counts {
		into := t.of(counts[i].Service, counts[i].Handler)
		for s, n := range counts[i].ByStatus {
			into.ByStatus[s] += n
		}
		for r, n := range counts[i].ByResult {
			into.ByResult[r] += n
		}
	}
}

// Result returns the counts, ordered by service and handler.
func (t *Tally) Result() []Count {
	out := make([]Count, 0, len(t.counts))
	for _, c := range t.counts {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Handler, b.Handler))
	})
	return out
}
