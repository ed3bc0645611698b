package listing

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"platform/internal/ids"
	"platform/partition/machine"
)

// GroupID identifies a failure group: a hash of what its failures have in common, so that
// partitions need not agree on it.
type GroupID [8]byte

// IsZero reports whether g identifies nothing.
func (g GroupID) IsZero() bool { return g == GroupID{} }

const groupPrefix = "fg_"

func (g GroupID) String() string { return groupPrefix + hex.EncodeToString(g[:]) }

// ParseGroup reads the text form of a group ID. The zero ID, with which a filter would select all
// invocations, is none.
func ParseGroup(text string) (g GroupID, err error) {
	digits, ok := strings.CutPrefix(text, groupPrefix)
	b, err := hex.DecodeString(digits)
	if ok && err == nil && len(b) == len(g) && digits == strings.ToLower(digits) && !GroupID(b).IsZero() {
		return GroupID(b), nil
	}
	return g, errors.New("the ID of a failure group is " + groupPrefix + " and 16 hexadecimal digits, not all 0")
}

// groupKey is what the failures of a group have in common.
type groupKey struct {
	service, handler string
	code             code
	message          string // normalised
	more             bool   // the message continues; not part of the identity
}

// ID returns the ID of the group.
func (k groupKey) ID() (g GroupID) {
	b := make([]byte, 0, 256)
	for _, part := range [...]string{k.service, k.handler, strconv.FormatUint(uint64(k.code.number), 10), k.code.catalogue, k.message} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	binary.BigEndian.PutUint64(g[:], xxh3.Hash(b))
	return g
}

// firstOf returns when inv first failed with the cause of its current failure.
func (k groupKey) firstOf(inv *machine.Invocation, f *failing) int64 {
	if len(inv.Causes) == 0 {
		return f.at
	}
	if since := inv.FailingSince(causeOf(k.code.number, k.message)); since != 0 {
		return min(since, f.at)
	}
	return f.at
}

// CauseOf identifies the cause of a failure for machine.Step: failures of an invocation have the
// same cause if they have the same code and normalised message. The code of the catalogue does
// not count, since a result does not have it.
func CauseOf(number uint32, message, key string) uint64 {
	normalised, _ := normalise(message, key)
	return causeOf(number, normalised)
}

func causeOf(number uint32, normalised string) uint64 {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 4+maxMessage), number)
	return max(xxh3.Hash(append(b, normalised...)), 1)
}

// grouped reports whether the failure of an invocation belongs to a group: cancelled and killed
// ones failed because an operator or a caller requested it.
func grouped(inv *machine.Invocation) bool {
	r := resultOf(inv)
	return r == Failure || r == NoResult
}

func groupOf(inv *machine.Invocation, f *failing) groupKey {
	message, more := normalise(f.message, inv.Target.Key)
	return groupKey{inv.Target.Service, inv.Target.Handler, f.code, message, more}
}

// shown returns the message as it is shown: one that continues ends with an ellipsis.
func (k groupKey) shown() string {
	if k.more {
		return k.message + "…"
	}
	return k.message
}

const (
	// MaxGroups bounds the failure groups of a partition and of a response.
	MaxGroups = 1000
	// maxGroupKeys and maxGroupDeployments bound what is counted per group.
	maxGroupKeys        = 1000
	maxGroupDeployments = 16
)

// Group is the current failures with a common cause.
type Group struct {
	ID               GroupID
	Service, Handler string
	Code             uint32
	ErrorCode        string // of the catalogue, such as RT0007; empty if there is none
	Message          string // normalised, with an ellipsis if it is longer
	Count            int
	ByStatus         [Statuses]int
	Keys             int   // distinct keys of objects and workflows, at most 1,000 per partition
	FirstSeen        int64 // first failure with this cause of these invocations
	LastSeen         int64
	Sample           ids.Invocation   // the one that failed last
	Deployments      []ids.Deployment // pinned; at most 16, sorted
}

// Groups collects failure groups from records. The zero value is ready to use.
type Groups struct {
	groups map[GroupID]*groupTally
	other  int
}

type groupTally struct {
	Group
	keys map[uint64]struct{}
}

// Add counts an invocation if it has a failure that belongs to a group.
func (g *Groups) Add(inv *machine.Invocation, live Live) {
	f := failureOf(inv, live)
	if f == nil || !isListed(inv) || !grouped(inv) {
		return
	}
	k := groupOf(inv, f)
	g.add(k, member{
		id: inv.ID, status: StatusOf(inv, live), first: k.firstOf(inv, f), at: f.at, key: hashOf(inv.Target.Key), keyed: inv.Target.Type.Keyed(), deployment: inv.Pin.Deployment,
	})
}

// member is a failed invocation of a group.
type member struct {
	id         ids.Invocation
	status     Status
	first, at  int64 // first and last failure with this cause
	key        uint64
	keyed      bool
	deployment ids.Deployment
}

func (g *Groups) add(k groupKey, m member) {
	if t := g.tally(k); t != nil {
		t.add(m)
	} else {
		g.other++
	}
}

// tally returns the group of a key; nil if there are too many groups.
func (g *Groups) tally(k groupKey) *groupTally {
	id := k.ID()
	t := g.groups[id]
	if t == nil && len(g.groups) < MaxGroups {
		if g.groups == nil {
			g.groups = map[GroupID]*groupTally{}
		}
		t = &groupTally{Group: Group{ID: id, Service: k.service, Handler: k.handler, Code: k.code.number, ErrorCode: k.code.catalogue, Message: k.shown()}}
		g.groups[id] = t
	}
	return t
}

func (t *groupTally) add(m member) {
	t.Count++
	t.ByStatus[m.status]++
	first := t.Count == 1
	if first || m.first < t.FirstSeen {
		t.FirstSeen = m.first
	}
	if first || m.at > t.LastSeen || m.at == t.LastSeen && m.id.Compare(t.Sample) < 0 {
		t.LastSeen, t.Sample = m.at, m.id
	}
	if m.keyed && len(t.keys) < maxGroupKeys {
		if t.keys == nil {
			t.keys = map[uint64]struct{}{}
		}
		t.keys[m.key] = struct{}{}
	}
	if m.deployment != "" {
		t.Deployments = addDeployment(t.Deployments, m.deployment)
	}
}

func addDeployment(list []ids.Deployment, d ids.Deployment) []ids.Deployment {
	at, known := slices.BinarySearch(list, d)
	if known || len(list) >= maxGroupDeployments {
		return list
	}
	return slices.Insert(list, at, d)
}

// Result returns the groups, ordered by ID, and how many failures belong to none because there
// were too many groups.
func (g *Groups) Result() (groups []Group, other int) {
	for _, t := range g.groups {
		t.Keys = len(t.keys)
		groups = append(groups, t.Group)
	}
	slices.SortFunc(groups, func(a, b Group) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return groups, g.other
}

// MergeGroups combines the groups of partitions, ordered by their last failure, the latest
// first. Groups beyond MaxGroups are counted in other.
func MergeGroups(lists ...[]Group) (groups []Group, other int) {
	merged := map[GroupID]*Group{}
	for _, list := range lists {
		for i := range list {
			if into := merged[list[i].ID]; into != nil {
				into.merge(&list[i])
			} else {
				g := list[i]
				g.Deployments = slices.Clone(g.Deployments)
				merged[g.ID] = &g
			}
		}
	}
	for _, g := range merged {
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.LastSeen, a.LastSeen), slices.Compare(a.ID[:], b.ID[:]))
	})
	for len(groups) > MaxGroups {
		other += groups[len(groups)-1].Count
		groups = groups[:len(groups)-1]
	}
	return groups, other
}

func (g *Group) merge(from *Group) {
	g.Count += from.Count
	g.Keys += from.Keys // an object belongs to one partition
	for i, n := range from.ByStatus {
		g.ByStatus[i] += n
	}
	g.FirstSeen = min(g.FirstSeen, from.FirstSeen)
	if from.LastSeen > g.LastSeen || from.LastSeen == g.LastSeen && from.Sample.Compare(g.Sample) < 0 {
		g.LastSeen, g.Sample = from.LastSeen, from.Sample
	}
	for _, d := range from.Deployments {
		g.Deployments = addDeployment(g.Deployments, d)
	}
}
