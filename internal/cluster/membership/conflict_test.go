package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func incarnation(s string, more func(*Config)) func(*Config) {
	return func(c *Config) {
		c.Incarnation = s
		if more != nil {
			more(c)
		}
	}
}

// requireYields waits until n yields its name to other.
func requireYields(t *testing.T, n, other *testNode) {
	t.Helper()
	select {
	case err := <-n.failed:
		require.ErrorIs(t, err, errNameTaken)
		require.ErrorContains(t, err, other.address)
		var taken *NameTakenError
		require.ErrorAs(t, err, &taken)
		require.Equal(t, other.selfMember().Incarnation, taken.Other.Incarnation)
	case <-time.After(time.Minute):
		require.Fail(t, "node did not yield its name")
	}
}

func TestSecondNodeWithSameNameYields(t *testing.T) {
	a, b, c := three(t, nil)
	for name, seed := range map[string]*testNode{"through another node": a, "through the node itself": c} {
		t.Run(name, func(t *testing.T) {
			second := start(t, "c", incarnation("2", seeds(seed))) // loses even if started in the same millisecond
			requireYields(t, second, c)
			require.NoError(t, second.Leave(t.Context()))
			second.crash()
			for _, n := range []*testNode{a, b, c} {
				require.Equal(t, Alive, n.State("c", "1"))
				require.Equal(t, Unknown, n.State("c", "2"))
				require.Empty(t, n.failed)
			}
		})
	}
}

func TestLaterOfTwoFreshNodesWithSameNameYields(t *testing.T) {
	first := start(t, "a", incarnation("1", nil))
	require.Eventually(t, func() bool { return time.Now().UnixMilli() > first.selfMember().Started.UnixMilli() }, time.Minute, time.Millisecond)
	second := start(t, "a", incarnation("2", seeds(first)))
	requireYields(t, second, first)
	require.Empty(t, first.failed)
}

// TestCopyOfDataDirectoryYields runs two nodes of the same incarnation, which gossip
// itself cannot distinguish.
func TestCopyOfDataDirectoryYields(t *testing.T) {
	a := start(t, "a", nil)
	b := start(t, "b", seeds(a))
	b.sees("a", "b")
	a.sees("a", "b")
	require.Eventually(t, func() bool { return time.Now().UnixMilli() > b.selfMember().Started.UnixMilli() }, time.Minute, time.Millisecond)
	cloned := start(t, "b", seeds(a))
	requireYields(t, cloned, b)
	require.Empty(t, b.failed)
}

// TestFreshNodeYieldsToReturningOwner lets a fresh node take the name of a cluster node
// that is down and returns.
func TestFreshNodeYieldsToReturningOwner(t *testing.T) {
	established := func(c *Config) { c.Meta.ClusterID = "id" }
	a := start(t, "a", established)
	fresh := start(t, "b", incarnation("2", seeds(a)))
	a.sees("a", "b")
	owner := start(t, "b", incarnation("1", func(c *Config) { established(c); seeds(a)(c) }))
	requireYields(t, fresh, owner)
	require.Empty(t, owner.failed)
	fresh.crash()
	a.eventually("return of the owner", func() bool { return a.State("b", "1") == Alive })
	owner.sees("a", "b")
}

// TestWipedNodeReclaimsItsName restarts a node immediately, on the same port, without its
// data directory.
func TestWipedNodeReclaimsItsName(t *testing.T) {
	a, b, c := three(t, func(c *Config) { c.Meta.ClusterID = "id" })
	c.crash()
	wiped := startAt(t, c.address, "c", incarnation("2", seeds(a, b)))
	for _, n := range []*testNode{a, b, wiped} {
		n.eventually("new incarnation", func() bool { return n.State("c", "2") == Alive })
		n.sees("a", "b", "c")
		require.Equal(t, Unknown, n.State("c", "1"))
	}
	require.Empty(t, wiped.failed)
	// Leave announces only once the conflict is over.
	require.Eventually(t, func() bool { return !wiped.conflicts.active() }, time.Minute, 10*time.Millisecond)
	require.NoError(t, wiped.Leave(t.Context()))
	require.Equal(t, Left, a.State("c", "2"))
}

func TestYieldToUnreachableNodeAfterGracePeriod(t *testing.T) {
	m := start(t, "a", nil)
	grace := m.cfg.profile.nameGrace
	unreachable := Member{Name: "a", Incarnation: "0", Address: "127.0.0.1:1", Meta: Meta{ClusterID: "id"}}
	require.False(t, m.mustYield(unreachable, grace))
	require.True(t, m.mustYield(unreachable, grace+1))
	before := m.selfMember() // at a former address
	before.Address, before.Started = "127.0.0.1:1", before.Started.Add(-time.Hour)
	require.False(t, m.mustYield(before, grace+1))
}

func TestGapEndsClaim(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	c := claim{}.extend(at(1), 5*time.Second).extend(at(6), 5*time.Second).extend(at(9), 5*time.Second)
	require.Equal(t, claim{first: at(1), last: at(9)}, c)
	require.Equal(t, claim{first: at(15), last: at(15)}, c.extend(at(15), 5*time.Second))
}

func TestOutranks(t *testing.T) {
	now := time.UnixMilli(1000)
	base := Member{Incarnation: "b", Started: now, Address: "b:1"}
	with := func(change func(*Member)) Member { m := base; change(&m); return m }
	for name, better := range map[string]Member{
		"belongs to a cluster": with(func(m *Member) { m.ClusterID, m.Started = "id", now.Add(time.Hour) }),
		"started earlier":      with(func(m *Member) { m.Started, m.Incarnation = now.Add(-1), "z" }),
		"smaller incarnation":  with(func(m *Member) { m.Incarnation, m.Address = "a", "z:1" }),
		"smaller address":      with(func(m *Member) { m.Address = "a:1" }),
	} {
		require.True(t, better.outranks(base), name)
		require.False(t, base.outranks(better), name)
	}
}

func TestRememberedConflictsAreBounded(t *testing.T) {
	claims := map[identity]claim{}
	for i := range 3 * maxRemembered {
		makeRoom(claims)
		claims[identity{byte(i), byte(i >> 8)}] = claim{}
		require.LessOrEqual(t, len(claims), maxRemembered)
	}
}
