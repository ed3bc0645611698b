package listing

import (
	"math/bits"
	"slices"

	"platform/internal/ids"
	"platform/partition/machine"
)

// plan is a filter translated to the numbers of an index.
type plan struct {
	f    *Filter
	x    *Index
	live LiveFunc

	status      [machine.Completed + 1]bool // Invoked: some of its statuses
	liveStatus  bool                        // attempts decide whether an Invoked one is selected
	traits      [256]bool
	targets     []bool // by number; nil: all
	deployments []bool
	limits      []bool
	codes       []bool
	groups      []bool
	keys        []uint64 // hashes
	idempotency []uint64
}

// plan translates a filter. It is valid until the index changes.
func (x *Index) plan(f *Filter, live LiveFunc) *plan {
	p := &plan{f: f, x: x, live: live}
	for s := machine.Scheduled; s <= machine.Completed; s++ {
		p.status[s] = s != machine.Invoked && among(f.Statuses, stored[s])
	}
	invoked := 0
	for _, s := range [...]Status{Ready, Running, BackingOff} {
		if among(f.Statuses, s) {
			invoked++
		}
	}
	failures := len(f.ErrorCodes) > 0 || !f.Group.IsZero()
	p.status[machine.Invoked], p.liveStatus = invoked > 0, invoked < 3 || failures
	for i := range p.traits {
		t := traits(i)
		p.traits[i] = among(f.Results, t.result()) && among(f.Sources, t.source())
	}
	if len(f.Services)+len(f.Handlers)+len(f.Scopes) > 0 {
		p.targets = numbers(&x.targets, func(k targetKey) bool {
			return among(f.Services, k.service) && among(f.Handlers, k.handler) && among(f.Scopes, k.scope)
		})
	}
	p.deployments, p.limits = listed(&x.deployments, f.Deployments), listed(&x.limits, f.LimitKeys)
	if len(f.ErrorCodes) > 0 {
		p.codes = numbers(&x.codes, func(c code) bool { return c != code{} && f.wantsCode(c) })
	}
	if !f.Group.IsZero() {
		p.groups = make([]bool, len(x.groups.values))
		for i := 1; i < len(p.groups); i++ {
			p.groups[i] = x.groups.refs[i] > 0 && x.groupIDs[uint32(i)] == f.Group
		}
	}
	p.keys, p.idempotency = hashes(f.Keys), hashes(f.IdempotencyKeys)
	return p
}

// numbers returns which interned values are selected, by number.
func numbers[K comparable](t *interned[K], wanted func(K) bool) []bool {
	out := make([]bool, len(t.values))
	for i, v := range t.values {
		out[i] = wanted(v)
	}
	return out
}

// listed is numbers for values in a list; nil if the list is empty.
func listed[K comparable](t *interned[K], list []K) []bool {
	if len(list) == 0 {
		return nil
	}
	return numbers(t, func(v K) bool { return slices.Contains(list, v) })
}

func hashes(keys []string) (list []uint64) {
	for _, k := range keys {
		list = append(list, hashOf(k))
	}
	return list
}

// wants reports whether a row is selected. For a row in too many groups and for hashes it may be
// wrong; the record decides.
func (p *plan) wants(c *chunk, i uint32) bool {
	status := c.status[i]
	if !p.status[status] || !p.traits[c.traits[i]] ||
		p.targets != nil && !p.targets[c.target[i]] || p.deployments != nil && !p.deployments[c.deployment[i]] ||
		p.limits != nil && !p.limits[c.limit[i]] || p.keys != nil && !slices.Contains(p.keys, c.key[i]) ||
		p.idempotency != nil && (c.idempotency[i] == 0 || !slices.Contains(p.idempotency, c.idempotency[i])) ||
		!p.f.Created.has(c.created[i]) || !p.f.Modified.has(c.modified[i]) || !p.f.Completed.has(c.completed[i]) {
		return false
	}
	if status == machine.Invoked {
		return !p.liveStatus || p.wantsLive(c, i)
	}
	return (p.codes == nil || p.codes[c.code[i]]) &&
		(p.groups == nil || c.group[i] == otherGroup || p.groups[c.group[i]])
}

// wantsLive reports whether an Invoked row is selected by the state of its attempts. Its group
// depends on its key, which only the record has.
func (p *plan) wantsLive(c *chunk, i uint32) bool {
	live := p.live(c.ids[i])
	if !among(p.f.Statuses, live.Status) {
		return false
	}
	if len(p.f.ErrorCodes) == 0 && p.f.Group.IsZero() {
		return true
	}
	return live.Failure != nil && p.f.wantsCode(code{live.Failure.Code, live.Failure.ErrorCode})
}

// each calls visit for the selected rows.
func (p *plan) each(visit func(c *chunk, i uint32)) {
	for row := uint32(0); row < p.x.rows; {
		c, _ := p.x.at(row)
		n := min(chunkRows, p.x.rows-row)
		for i := range n {
			if p.wants(c, i) {
				visit(c, i)
			}
		}
		row += n
	}
}

// eachMarked calls visit for the selected rows among those that are marked.
func (p *plan) eachMarked(marked func(c *chunk, word int) uint64, visit func(c *chunk, i uint32)) {
	for _, c := range p.x.chunks {
		for word := range len(c.invoked) {
			for rest := marked(c, word); rest != 0; rest &= rest - 1 {
				if i := uint32(word*64 + bits.TrailingZeros64(rest)); p.wants(c, i) {
					visit(c, i)
				}
			}
		}
	}
}

// statusAt returns the status of a row.
func (p *plan) statusAt(c *chunk, i uint32) Status {
	if s := c.status[i]; s != machine.Invoked {
		return stored[s]
	}
	return p.live(c.ids[i]).Status
}

// Select adds the places of the selected invocations to top. A record may turn out not to be
// selected if the filter has keys, idempotency keys or a failure group.
func (x *Index) Select(f *Filter, top *Top, live LiveFunc) {
	p := x.plan(f, live)
	// Rows are mostly in creation order, so the first places are found early.
	for n := range x.chunks {
		if !top.order.OldestFirst {
			n = len(x.chunks) - 1 - n
		}
		p.selectFrom(uint32(n), top)
	}
}

// selectFrom adds the places of a chunk's rows.
func (p *plan) selectFrom(n uint32, top *Top) {
	if n*chunkRows >= p.x.rows {
		return
	}
	c := p.x.chunks[n]
	at, in := &c.created, c.createdIn
	if top.order.ByModified {
		at, in = &c.modified, c.modifiedIn
	}
	if top.skipsAll(in) {
		return
	}
	for i := range min(chunkRows, p.x.rows-n*chunkRows) {
		if !top.skips(at[i]) && p.wants(c, i) {
			top.Add(Place{at[i], c.ids[i]})
		}
	}
}

// Count adds the numbers of the selected invocations to t. If the filter has a failure group, it
// calls unsure for those whose records decide. It does not verify hashes of keys, which have 64
// bits.
func (x *Index) Count(f *Filter, t *Tally, live LiveFunc, unsure func(ids.Invocation)) {
	p := x.plan(f, live)
	counts := make([]Count, len(x.targets.values))
	add := func(c *chunk, i uint32) {
		if p.groups != nil && (c.status[i] == machine.Invoked || c.group[i] == otherGroup) {
			unsure(c.ids[i])
			return
		}
		n := &counts[c.target[i]]
		n.ByStatus[p.statusAt(c, i)]++
		if r := c.traits[i].result(); r != NoResult {
			n.ByResult[r]++
		}
	}
	if p.hasTotals() {
		p.addTotals(counts)
		p.eachMarked(func(c *chunk, word int) uint64 { return c.invoked[word] }, add)
	} else {
		p.each(add)
	}
	for i, k := range x.targets.values {
		if counts[i].Total() > 0 {
			counts[i].Service, counts[i].Handler = k.service, k.handler
			t.Merge(counts[i : i+1])
		}
	}
}

// hasTotals reports whether the totals of targets are sufficient, apart from Invoked rows: the filter
// has no conditions on other columns.
func (p *plan) hasTotals() bool {
	f := p.f
	return p.deployments == nil && p.limits == nil && p.codes == nil && p.groups == nil && p.keys == nil && p.idempotency == nil &&
		len(f.Sources) == 0 && f.Created == Range{} && f.Modified == Range{} && f.Completed == Range{}
}

// addTotals adds the numbers of selected rows that are not Invoked.
func (p *plan) addTotals(counts []Count) {
	for target, all := range p.x.totals {
		if all == nil || p.targets != nil && !p.targets[target] {
			continue
		}
		for status, results := range all {
			if machine.Status(status) == machine.Invoked || !p.status[status] {
				continue
			}
			for r, n := range results {
				if n == 0 || !among(p.f.Results, Result(r)) {
					continue
				}
				counts[target].ByStatus[stored[status]] += int(n)
				if Result(r) != NoResult {
					counts[target].ByResult[r] += int(n)
				}
			}
		}
	}
}

// Failures adds the failures of invocations that have ended or are paused to g, and calls
// invoked for the selected ones that are Invoked and have a failed attempt: their groups depend
// on their records.
func (x *Index) Failures(f *Filter, g *Groups, live LiveFunc, invoked func(ids.Invocation, Live)) {
	p := x.plan(f, live)
	tallies := map[uint32]*groupTally{}
	p.eachMarked(func(c *chunk, word int) uint64 { return c.invoked[word] | c.failed[word] }, func(c *chunk, i uint32) {
		if c.status[i] == machine.Invoked {
			if l := live(c.ids[i]); l.Failure != nil {
				invoked(c.ids[i], l)
			}
			return
		}
		n := c.group[i]
		if n == noGroup {
			return
		}
		if n == otherGroup {
			g.other++
			return
		}
		t, known := tallies[n]
		if !known {
			t = g.tally(x.groups.values[n])
			tallies[n] = t
		}
		if t == nil {
			g.other++
			return
		}
		m := member{id: c.ids[i], status: stored[c.status[i]], first: c.first[i], at: c.completed[i], key: c.key[i], keyed: c.traits[i].keyed(), deployment: x.deployments.values[c.deployment[i]]}
		if c.status[i] == machine.Paused {
			m.at = c.modified[i]
		}
		t.add(m)
	})
}
