package retention

import (
	"log/slog"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// testGroup is a group whose log has entries of 1 MiB, with the values that its policy asks for.
type testGroup struct {
	*Policy
	alone   bool
	match   uint64 // of the follower
	now     time.Time
	held    int64 // by all groups of the node, as reported
	dropped []Reason
}

// newTestGroup returns a group that has stored entries 1 to last. Nothing trails, and the node
// may hold 50 MiB.
func newTestGroup(t *testing.T, last uint64) *testGroup {
	g := &testGroup{now: time.Unix(1000, 0)}
	g.Policy = NewPolicy(Config{
		Alone:     func() bool { return g.alone },
		Match:     func(raft.ServerID, uint64) uint64 { return g.match },
		Now:       func() time.Time { return g.now },
		Budget:    NewBudget(50 << 20),
		OnHeld:    func(bytes int64) { g.held = bytes },
		OnDropped: func(reason Reason) { g.dropped = append(g.dropped, reason) },
		Logger:    slog.New(slog.DiscardHandler),
	})
	g.store(1, last)
	return g
}

func (g *testGroup) store(first, last uint64) {
	data := make([]byte, 1<<20)
	for i := first; i <= last; i++ {
		g.Stored([]*raft.Log{{Index: i, Data: data}})
	}
}

func TestTrailingEntriesAreBoundedInNumberAndBytes(t *testing.T) {
	g := newTestGroup(t, 100)
	g.cfg.TrailingEntries, g.cfg.TrailingBytes = 50, 1<<40
	require.EqualValues(t, 50, g.Compactable(90, 100))
	require.EqualValues(t, 40, g.Compactable(40, 100), "no more than requested")
	require.EqualValues(t, 0, g.Compactable(30, 40), "all entries are few")

	g.cfg.TrailingBytes = 20 << 20
	require.EqualValues(t, 80, g.Compactable(90, 100))
	require.EqualValues(t, 70, g.Compactable(70, 100))
	started := newTestGroup(t, 0)
	started.cfg.TrailingEntries, started.cfg.TrailingBytes = 50, 20<<20
	require.EqualValues(t, 50, started.Compactable(90, 100), "sizes are unknown after a start")

	g.alone = true
	require.EqualValues(t, 90, g.Compactable(90, 100))
}

// A node is restarted again and again before TrailingBytes have been stored.
func TestTrailingBytesAreBoundedAcrossRestarts(t *testing.T) {
	first, last := uint64(1), uint64(0)
	for range 20 {
		g := newTestGroup(t, 0)
		g.cfg.TrailingEntries, g.cfg.TrailingBytes = 1<<20, 20<<20
		g.Started(first, last)
		g.store(last+1, last+15)
		last += 15
		first = max(first, g.Compactable(last, last)+1)
	}
	require.InDelta(t, 20, last-first, 3, "entries of 1 MiB")
}

// Entries at the end of the log of a follower are replaced: the sizes of the others are still known.
func TestSizesAreKnownAfterEntriesWereReplaced(t *testing.T) {
	g := newTestGroup(t, 100)
	g.cfg.TrailingEntries, g.cfg.TrailingBytes = 1<<20, 20<<20
	g.store(96, 100)
	require.InDelta(t, 80, g.Compactable(100, 100), 1)
}

func TestTheLowestHoldCounts(t *testing.T) {
	g := newTestGroup(t, 100)
	g.Hold(80)
	h := g.Hold(70)
	require.EqualValues(t, 60, g.Compactable(60, 100))
	require.EqualValues(t, 69, g.Compactable(90, 100))
	require.InDelta(t, 21<<20, g.held, 1<<20)
	h.End()
	require.EqualValues(t, 79, g.Compactable(90, 100))
	require.Equal(t, 1, g.Holds())
	g.DropHolds()
	require.Zero(t, g.held)
	require.EqualValues(t, 90, g.Compactable(90, 100))
	require.Empty(t, g.dropped)
}

func TestAHoldStartsAtTheExportedState(t *testing.T) {
	g := newTestGroup(t, 100)
	h := g.Hold(60)
	require.EqualValues(t, 59, g.Compactable(90, 100))
	h.Exported(75)
	require.EqualValues(t, 74, g.Compactable(90, 100))
}

func TestACompletedTransferFollowsItsFollower(t *testing.T) {
	g := newTestGroup(t, 100)
	h := g.Hold(70)
	h.Follow("b", 3)
	h.End()
	g.match = 69
	require.EqualValues(t, 69, g.Compactable(90, 100))
	g.match = 80
	require.EqualValues(t, 79, g.Compactable(90, 100))
	g.match = 100
	require.EqualValues(t, 90, g.Compactable(90, 100), "caught up")
	g.match = 69
	require.EqualValues(t, 90, g.Compactable(90, 100), "a hold that ended does not come back")
	require.Empty(t, g.dropped)
}

func TestAFormerLeaderHoldsNothingForItsFollowers(t *testing.T) {
	g := newTestGroup(t, 100)
	g.Hold(70).Follow("b", 3)
	require.EqualValues(t, 90, g.Compactable(90, 100))
}

func TestAHoldWithoutProgressIsDropped(t *testing.T) {
	g := newTestGroup(t, 100)
	h := g.Hold(70)
	g.now = g.now.Add(idleLimit)
	require.EqualValues(t, 69, g.Compactable(90, 100))
	h.Progressed()
	g.now = g.now.Add(idleLimit)
	require.EqualValues(t, 69, g.Compactable(90, 100))
	g.now = g.now.Add(1)
	require.EqualValues(t, 90, g.Compactable(90, 100))
	require.Equal(t, []Reason{Stalled}, g.dropped)
}

func TestTheOldestHoldsAreDroppedBeyondTheBudget(t *testing.T) {
	g := newTestGroup(t, 100)
	g.Hold(20)
	g.Hold(60)
	require.EqualValues(t, 59, g.Compactable(90, 100))
	require.Equal(t, []Reason{TooLarge}, g.dropped)
	g.cfg.Budget.held.Add(40 << 20) // by other groups
	require.EqualValues(t, 90, g.Compactable(90, 100))
	require.EqualValues(t, 40<<20, g.cfg.Budget.Held())
	require.Equal(t, []Reason{TooLarge, TooLarge}, g.dropped)
}

func TestNoPolicyRetainsNothing(t *testing.T) {
	var p *Policy
	p.Stored([]*raft.Log{{Index: 1}})
	h := p.Hold(1)
	h.Exported(1)
	h.Progressed()
	h.Follow("b", 1)
	h.End()
	p.DropHolds()
	require.EqualValues(t, 90, p.Compactable(90, 100))
}

func TestMeasuredSizesOfALogAreBounded(t *testing.T) {
	g := newTestGroup(t, 3*maxMarks)
	require.LessOrEqual(t, len(g.sizes.marks), maxMarks)
	require.InDelta(t, 1000<<20, g.sizes.between(5001, 6000), 16<<20)
	require.InDelta(t, 10<<20, g.sizes.between(3*maxMarks-9, 3*maxMarks), 1<<20)
	require.Zero(t, g.sizes.between(10, 9))
}
