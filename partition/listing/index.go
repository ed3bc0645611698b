package listing

import (
	"hash/maphash"
	"slices"
	"strings"
	"unsafe"

	"platform/internal/ids"
	"platform/partition/machine"
)

// targetKey is an interned target without its key.
type targetKey struct{ scope, service, handler string }

// The groups of rows without one.
const (
	noGroup    = 0
	otherGroup = ^uint32(0) // there are too many groups
)

// totals are the numbers of rows by status and result.
type totals [machine.Completed + 1][Results]uint32

const totalsBytes = int(unsafe.Sizeof(totals{}))

// Index is the columns of the invocations of a partition. Its methods that read may be called
// concurrently with each other, but not with those that write.
type Index struct {
	columns
	table       table
	targets     interned[targetKey]
	deployments interned[ids.Deployment]
	limits      interned[string]
	codes       interned[code]
	groups      interned[groupKey]
	groupIDs    map[uint32]GroupID
	totals      []*totals // by number of the target, nil unless it is in use
	limit       int

	// Rows that are left out because the index is full: completed ones created before
	// completedFrom, all created before from. 0: none.
	completedFrom, from int64
}

// New returns an empty index of up to limit bytes.
func New(limit int) *Index {
	return &Index{
		limit:       limit,
		targets:     newInterned(func(k targetKey) int { return len(k.scope) + len(k.service) + len(k.handler) }),
		deployments: newInterned(func(d ids.Deployment) int { return len(d) }),
		limits:      newInterned(func(s string) int { return len(s) }),
		codes:       newInterned(func(c code) int { return len(c.catalogue) }),
		groups:      newInterned(func(k groupKey) int { return len(k.service) + len(k.handler) + len(k.message) }),
		groupIDs:    map[uint32]GroupID{},
	}
}

// Len returns the number of invocations.
func (x *Index) Len() int { return int(x.rows) }

// Bytes returns the approximate memory of the index.
func (x *Index) Bytes() int {
	return len(x.chunks)*chunkBytes + x.table.bytes() + x.targets.bytes + x.deployments.bytes + x.limits.bytes + x.codes.bytes + x.groups.bytes + x.targets.len()*totalsBytes
}

// CompleteFrom returns the creation time from which on all invocations are in the index; 0:
// all are.
func (x *Index) CompleteFrom() int64 { return max(x.completedFrom, x.from) }

// SetLimit changes the limit, and leaves rows out if the index is larger.
func (x *Index) SetLimit(limit int) {
	x.limit = limit
	x.evict()
}

// Delete removes an invocation, if it is present.
func (x *Index) Delete(id ids.Invocation) {
	if slot, found := x.table.find(&x.columns, &id); found {
		x.remove(slot)
	}
}

// Put adds or replaces an invocation. It keeps no reference to inv.
func (x *Index) Put(inv *machine.Invocation) {
	if !isListed(inv) {
		return
	}
	slot, found := x.table.find(&x.columns, &inv.ID)
	if x.leavesOut(inv.CreatedAt, inv.Status) {
		if found {
			x.remove(slot)
		}
		return
	}
	if found {
		row := x.table.slots[slot] - 1
		before := x.references(row)
		x.forget(row)
		x.fill(row, inv)
		x.release(before) // after fill, so that values still in use keep their numbers
		return
	}
	row := x.grow()
	c, i := x.at(row)
	c.ids[i] = inv.ID
	x.fill(row, inv)
	x.table.add(&x.columns, row)
	if x.Bytes() > x.limit {
		x.evict()
	}
}

func (x *Index) leavesOut(created int64, status machine.Status) bool {
	return created < x.from || created < x.completedFrom && status == machine.Completed
}

// remove removes the row of a slot; the last row takes its place.
func (x *Index) remove(slot uint32) {
	row := x.table.slots[slot] - 1
	x.forget(row)
	x.release(x.references(row))
	x.table.remove(&x.columns, slot)
	if last := x.rows - 1; row != last {
		c, i := x.at(last)
		moved, _ := x.table.find(&x.columns, &c.ids[i])
		x.move(last, row)
		x.table.slots[moved] = row + 1
	}
	x.shrink()
}

// fill writes the columns of a row except the ID.
func (x *Index) fill(row uint32, inv *machine.Invocation) {
	c, i := x.at(row)
	t := &inv.Target
	c.created[i], c.modified[i], c.completed[i] = inv.CreatedAt, inv.ModifiedAt, inv.CompletedAt
	c.key[i], c.idempotency[i] = hashOf(t.Key), 0
	if inv.IdempotencyKey != nil {
		c.idempotency[i] = hashOf(*inv.IdempotencyKey)
	}
	c.target[i] = x.targets.number(targetKey{t.Scope, t.Service, t.Handler}, targetKey.copied)
	c.deployment[i] = x.deployments.number(inv.Pin.Deployment, func(d ids.Deployment) ids.Deployment { return ids.Deployment(strings.Clone(string(d))) })
	c.limit[i] = x.limits.number(inv.LimitKey, strings.Clone)
	c.status[i], c.traits[i] = inv.Status, traitsOf(inv)
	c.code[i], c.group[i], c.first[i] = 0, noGroup, 0
	if f := failureOf(inv, Live{}); f != nil {
		c.code[i] = x.codes.number(f.code, code.copied)
		if grouped(inv) {
			k := groupOf(inv, f)
			c.group[i], c.first[i] = x.group(k), k.firstOf(inv, f)
		}
	}
	c.mark(i)
	x.totalsOf(c.target[i])[c.status[i]][c.traits[i].result()]++
}

// totalsOf returns the totals of a target that is in use.
func (x *Index) totalsOf(target uint32) *totals {
	if missing := int(target) + 1 - len(x.totals); missing > 0 {
		x.totals = append(x.totals, make([]*totals, missing)...)
	}
	if x.totals[target] == nil {
		x.totals[target] = new(totals)
	}
	return x.totals[target]
}

// forget removes a row from the marks of its chunk and from the totals, before it is filled or
// removed.
func (x *Index) forget(row uint32) {
	c, i := x.at(row)
	c.unmark(i)
	x.totals[c.target[i]][c.status[i]][c.traits[i].result()]--
}

// group returns the number of a failure group and adds a reference to it.
func (x *Index) group(k groupKey) uint32 {
	if _, known := x.groups.numbers[k]; !known && x.groups.len() >= MaxGroups {
		return otherGroup
	}
	n := x.groups.number(k, groupKey.copied)
	x.groupIDs[n] = k.ID()
	return n
}

func (k targetKey) copied() targetKey {
	return targetKey{strings.Clone(k.scope), strings.Clone(k.service), strings.Clone(k.handler)}
}

func (c code) copied() code { return code{c.number, strings.Clone(c.catalogue)} }

func (k groupKey) copied() groupKey {
	return groupKey{strings.Clone(k.service), strings.Clone(k.handler), k.code.copied(), strings.Clone(k.message), k.more}
}

// references are the interned values of a row.
type references struct{ target, deployment, limit, code, group uint32 }

func (x *Index) references(row uint32) references {
	c, i := x.at(row)
	return references{c.target[i], c.deployment[i], c.limit[i], c.code[i], c.group[i]}
}

func (x *Index) release(r references) {
	if x.targets.release(r.target) {
		x.totals[r.target] = nil
	}
	x.deployments.release(r.deployment)
	x.limits.release(r.limit)
	x.codes.release(r.code)
	if r.group != otherGroup {
		x.groups.release(r.group)
	}
}

// evictSamples is how many creation times are sorted to find the oldest rows.
const evictSamples = 8192

// evict leaves out the oldest rows until the index has room for another chunk: completed ones
// first, an eighth at a time.
func (x *Index) evict() {
	for x.rows > 0 && x.Bytes() > x.limit {
		times := x.sample(func(s machine.Status) bool { return s == machine.Completed })
		if len(times) > 0 {
			x.completedFrom = max(x.completedFrom, times[len(times)/8]+1)
		} else {
			times = x.sample(func(machine.Status) bool { return true })
			x.from = max(x.from, times[len(times)/8]+1)
		}
		x.removeLeftOut()
	}
}

// sample returns the creation times of rows with some statuses, sorted.
func (x *Index) sample(wanted func(machine.Status) bool) (times []int64) {
	step := max(1, x.rows/evictSamples)
	for step >= 1 {
		for row := uint32(0); row < x.rows; row += step {
			if c, i := x.at(row); wanted(c.status[i]) {
				times = append(times, c.created[i])
			}
		}
		if len(times) > 0 || step == 1 {
			break
		}
		step = 1 // few rows have the status
	}
	slices.Sort(times)
	return times
}

func (x *Index) removeLeftOut() {
	for row := x.rows; row > 0; row-- {
		c, i := x.at(row - 1)
		if x.leavesOut(c.created[i], c.status[i]) {
			slot, _ := x.table.find(&x.columns, &c.ids[i])
			x.remove(slot)
		}
	}
	x.trim()
	x.table.shrink(&x.columns)
}

var seed = maphash.MakeSeed()

// hashOf returns the hash of a key; it is the same within a process only.
func hashOf(key string) uint64 { return maphash.String(seed, key) }
