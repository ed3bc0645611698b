package partition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/raftgroup"
	"platform/partition/machine"
	"platform/partition/store"
)

// newComparedReplicaSet returns a replica set whose replicas are compared continuously once open is set.
func newComparedReplicaSet(t *testing.T, open *atomic.Bool) *replicaSet {
	return newReplicaSet(t, func(c *replicaSet) {
		c.profile.TrailingLogs = 50
		c.tune = func(cfg *Config) {
			cfg.Digests.Entries, cfg.Digests.pause = 5, time.Millisecond
			cfg.Level = func() feature.Level { return feature.Level2 } // digests require it
			cfg.Digests.Fetch = func(_ context.Context, to raft.Server, _ uint32, r DigestRound) (DigestResponse, error) {
				c.mu.RLock()
				defer c.mu.RUnlock()
				for _, h := range c.hosts {
					if h.name == string(to.ID) && h.p != nil && open.Load() {
						return h.p.Digest(r), nil
					}
				}
				return DigestResponse{}, errors.New("no answer")
			}
		}
	})
}

// lastDigest returns the round of the last result of a host.
func (c *replicaSet) lastDigest(host int) DigestRound {
	c.mu.RLock()
	defer c.mu.RUnlock()
	p := c.hosts[host].p
	if p == nil {
		return DigestRound{}
	}
	p.digests.mu.Lock()
	defer p.digests.mu.Unlock()
	if n := len(p.digests.results); n > 0 {
		last := p.digests.results[n-1]
		return DigestRound{last.Epoch, last.Round}
	}
	return DigestRound{}
}

// awaitDigests fills until a host has taken part in n more rounds.
func (c *replicaSet) awaitDigests(host, n int) {
	c.t.Helper()
	for range n {
		before := c.lastDigest(host)
		require.Eventually(c.t, func() bool {
			c.fill(2)
			return c.lastDigest(host) != before
		}, 2*time.Minute, time.Millisecond)
	}
}

// plant changes a row in the tables of a host that is down.
func (c *replicaSet) plant(i int) {
	h := c.hosts[i]
	logs, tables := h.reopen(c.t)
	own, err := tables.Partition(0)
	require.NoError(c.t, err)
	index, term := own.Applied()
	e, err := own.Export()
	require.NoError(c.t, err)
	imp, err := own.Import()
	require.NoError(c.t, err)
	planted := 0
	require.NoError(c.t, e.Each(c.t.Context(), func(key, value []byte) error {
		if at := bytes.LastIndex(value, []byte(`"later"`)); at >= 0 && planted == 0 {
			value = bytes.Clone(value)
			value[at+1]++
			planted++
		}
		return imp.Put(key, value)
	}))
	require.Equal(c.t, 1, planted)
	require.NoError(c.t, imp.Commit(c.t.Context(), index, term))
	require.NoError(c.t, errors.Join(e.Close(), tables.Close(), logs.Close()))
}

func (c *replicaSet) requireHealthy(hosts ...int) {
	c.t.Helper()
	for _, i := range hosts {
		require.NoError(c.t, c.hosts[i].p.group.Err(), c.hosts[i].name)
	}
}

// The replicas are compared across restarts, changes of leader and the installation of a
// snapshot.
func TestReplicasWithEqualTablesHaveEqualDigests(t *testing.T) {
	var open atomic.Bool
	open.Store(true)
	c := newComparedReplicaSet(t, &open)
	c.fill(200)
	for i := range 3 {
		c.awaitDigests(i, 2)
	}
	for i := range 3 {
		c.kill(i)
		c.fill(200) // more than the log retains
		require.NoError(t, c.hosts[c.leader()].p.Checkpoint(t.Context()))
		c.start(i)
		c.requireSame(0, 1, 2)
		c.awaitDigests(i, 2)
	}
	c.requireHealthy(0, 1, 2)
	c.requireSame(0, 1, 2)
}

func TestADivergedFollowerIsQuarantined(t *testing.T) {
	var open atomic.Bool
	open.Store(true)
	c := newComparedReplicaSet(t, &open)
	c.fill(100)
	f := (c.leader() + 1) % 3
	c.requireSame(0, 1, 2)
	require.NoError(t, c.hosts[f].p.Checkpoint(t.Context()))
	c.close(f)
	c.plant(f)
	c.start(f)
	c.requireQuarantined(f)
}

// requireQuarantined waits until a host has detected that its tables differ, and checks
// that the others continue.
func (c *replicaSet) requireQuarantined(i int) {
	c.t.Helper()
	p := c.hosts[i].p
	require.Eventually(c.t, func() bool {
		c.fill(2)
		return p.group.Err() != nil
	}, 2*time.Minute, time.Millisecond)
	require.ErrorIs(c.t, p.group.Err(), raftgroup.ErrQuarantined)
	require.ErrorIs(c.t, p.group.Err(), errDiverged)
	<-p.group.Done()
	reason, err := c.hosts[i].logs.Quarantined(GroupID(0))
	require.NoError(c.t, err)
	require.Contains(c.t, reason, "differ")
	a, b := (i+1)%3, (i+2)%3
	c.fill(50)
	c.requireHealthy(a, b)
	c.requireSame(a, b)
}

// The leader detects that its own tables differ.
func TestADivergedLeaderIsQuarantined(t *testing.T) {
	var open atomic.Bool
	c := newComparedReplicaSet(t, &open) // it is not compared with others before it leads
	c.fill(100)
	l := (c.leader() + 1) % 3
	c.requireSame(0, 1, 2)
	require.NoError(t, c.hosts[l].p.Checkpoint(t.Context()))
	c.close(l)
	c.plant(l)
	c.start(l)
	require.Eventually(t, func() bool {
		at := c.leader()
		return at == l || c.hosts[at].p.TransferLeadership(t.Context(), c.servers(l)[0].ID) == nil && c.hosts[l].p.Leading()
	}, 2*time.Minute, 10*time.Millisecond)
	open.Store(true)
	c.requireQuarantined(l)
}

func TestReplicasThatDifferFromAMajorityAreFound(t *testing.T) {
	voters := func(n int) (v []raft.Server) {
		for i := range n {
			v = append(v, raft.Server{ID: raft.ServerID(fmt.Sprint(i))})
		}
		return v
	}
	x := &machine.DigestResult{Rows: 1, Sum: []byte("x")}
	y := &machine.DigestResult{Rows: 1, Sum: []byte("y")}
	for name, c := range map[string]struct {
		results   []*machine.DigestResult // the leader's first
		agreed    *machine.DigestResult
		differing []raft.ServerID
		complete  bool
	}{
		"all agree":                         {[]*machine.DigestResult{x, x, x}, x, nil, true},
		"one result missing":                {[]*machine.DigestResult{x, nil, x}, x, nil, false},
		"only the leader's result":          {[]*machine.DigestResult{x, nil, nil}, nil, nil, false},
		"the leader's result missing":       {[]*machine.DigestResult{nil, y, y}, y, nil, false},
		"a follower differs":                {[]*machine.DigestResult{x, y, x}, x, []raft.ServerID{"1"}, true},
		"the leader differs":                {[]*machine.DigestResult{x, y, y}, y, []raft.ServerID{"0"}, true},
		"two voters, no majority":           {[]*machine.DigestResult{x, y}, nil, []raft.ServerID{"1"}, true},
		"one of three missing, no majority": {[]*machine.DigestResult{x, y, nil}, nil, []raft.ServerID{"1"}, false},
		"two against two":                   {[]*machine.DigestResult{x, y, y, x}, nil, []raft.ServerID{"1", "2"}, true},
		"three of five are a majority":      {[]*machine.DigestResult{x, y, y, y, nil}, y, []raft.ServerID{"0"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := evaluate(voters(len(c.results)), "0", c.results)
			require.Equal(t, roundResult{c.agreed, c.differing, c.complete}, v)
		})
	}
}

// The rows of a round are the same on all replicas, so not each one that cannot read them may stop: that might be a majority.
func TestRowsThatCannotBeReadAreReported(t *testing.T) {
	var reported []error
	quarantine := func(err error) { t.Error(err) }
	d := newDigests(nil, DigestConfig{}, slog.New(slog.DiscardHandler), quarantine, func(err error) { reported = append(reported, err) })
	d.failLocked(fmt.Errorf("digest: %w", store.ErrDamaged))
	d.failLocked(fmt.Errorf("digest: %w", store.ErrClosed))
	d.close()
	require.Len(t, reported, 1)
	require.ErrorIs(t, reported[0], store.ErrDamaged)
}
