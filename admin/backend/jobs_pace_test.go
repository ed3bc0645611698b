package backend

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// busyCluster executes a number of operations per second; others wait.
type busyCluster struct {
	perSecond float64

	mu      sync.Mutex // covers the fields below
	backlog float64
	at      time.Time
}

func (b *busyCluster) operation() {
	b.mu.Lock()
	now := time.Now()
	b.backlog = max(b.backlog-now.Sub(b.at).Seconds()*b.perSecond, 0) + 1
	b.at = now
	wait := time.Duration(b.backlog / b.perSecond * float64(time.Second))
	b.mu.Unlock()
	time.Sleep(2*time.Millisecond + wait)
}

// operations executes operations at a pace for a time and returns how many were started.
func operations(t *testing.T, p *pace, b *busyCluster, d time.Duration) (n int) {
	var g errgroup.Group
	g.SetLimit(jobParallel)
	for end := time.Now().Add(d); time.Now().Before(end); n++ {
		require.NoError(t, p.wait(t.Context()))
		g.Go(func() error {
			start := time.Now()
			b.operation()
			p.record(time.Since(start))
			return nil
		})
	}
	require.NoError(t, g.Wait())
	return n
}

func TestAJobIsFastWhileItsOperationsAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.Greater(t, operations(t, newPace(), &busyCluster{perSecond: 100_000}, 10*time.Second), 7*jobRate)
	})
}

// TestAJobLeavesRoomForOthers lets the cluster become busy with the work of others, and idle again.
func TestAJobLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, b := newPace(), &busyCluster{perSecond: 400}
		operations(t, p, b, 20*time.Second)
		n := operations(t, p, b, 20*time.Second)
		require.Greater(t, n, 20*100)
		require.Less(t, n, 20*400, "the cluster is not used up")
		require.Less(t, b.backlog, 5.0, "operations of others would wait")

		b.perSecond = 60
		operations(t, p, b, 20*time.Second)
		require.Less(t, operations(t, p, b, 20*time.Second), 20*60)

		b.perSecond = 100_000
		operations(t, p, b, 60*time.Second)
		require.Greater(t, operations(t, p, b, 10*time.Second), 10*jobRate/2)
	})
}
