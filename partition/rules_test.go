package partition

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
)

// ruleTable is a source of rules and the partition that receives them.
type ruleTable struct {
	mu      sync.Mutex // covers the fields below
	book    *flowcontrol.Book
	changed chan struct{}
	known   uint32
	got     []*flowcontrol.Book
	fail    int  // number of proposals that will fail
	quietly bool // failed proposals take effect
}

func newRuleTable(version uint32) *ruleTable {
	return &ruleTable{book: &flowcontrol.Book{Version: version}, changed: make(chan struct{})}
}

func (tt *ruleTable) Rules() (*flowcontrol.Book, <-chan struct{}) {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	return tt.book, tt.changed
}

func (tt *ruleTable) publish(b *flowcontrol.Book) {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	tt.book = b
	close(tt.changed)
	tt.changed = make(chan struct{})
}

func (tt *ruleTable) version() (uint32, error) {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	return tt.known, nil
}

func (tt *ruleTable) propose(_ context.Context, b *flowcontrol.Book) error {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	failing := tt.fail > 0
	if !failing || tt.quietly {
		tt.known, tt.got = b.Version, append(tt.got, b)
	}
	if failing {
		tt.fail--
		return errors.New("not now")
	}
	return nil
}

func (tt *ruleTable) versions() (list []uint32) {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	for _, b := range tt.got {
		list = append(list, b.Version)
	}
	return list
}

// keep runs a syncer until the test ends.
func keep(t *testing.T, tt *ruleTable) *ruleSyncer {
	k := newRuleSyncer(tt, tt.version, tt.propose)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- k.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return k
}

func TestALeaderProposesNewerRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tt := newRuleTable(5)
		tt.known = 3
		k := keep(t, tt)
		synctest.Wait()
		require.Equal(t, []uint32{5}, tt.versions(), "changes before the leadership")

		tt.publish(&flowcontrol.Book{Version: 5, Rules: []flowcontrol.Rule{{Description: "other words"}}})
		tt.publish(&flowcontrol.Book{Version: 4}) // a metadata replica that lags
		synctest.Wait()
		require.Equal(t, []uint32{5}, tt.versions())

		tt.publish(&flowcontrol.Book{Version: 6})
		synctest.Wait()
		require.Equal(t, []uint32{5, 6}, tt.versions())
		k.await(t.Context(), t.Context(), 6)
	})
}

func TestAnEmptyRuleBookIsNotProposed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tt := newRuleTable(0)
		keep(t, tt)
		synctest.Wait()
		require.Empty(t, tt.versions())
	})
}

func TestRulesAreProposedUntilThePartitionHasThem(t *testing.T) {
	for name, quietly := range map[string]bool{"refused": false, "answers lost": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt := newRuleTable(2)
				tt.fail, tt.quietly = 3, quietly
				k := keep(t, tt)
				k.await(t.Context(), t.Context(), 2)
				require.Equal(t, []uint32{2}, tt.versions())
			})
		})
	}
}

// A book has up to 10,000 rules, so proposing it takes long.
func TestRulesAreProposedLessOftenWhileThePartitionRejectsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const proposals = 1 << 20
		tt := newRuleTable(2)
		tt.fail = proposals
		keep(t, tt)
		time.Sleep(time.Minute)
		synctest.Wait()
		tt.mu.Lock()
		defer tt.mu.Unlock()
		require.InDelta(t, 67, proposals-tt.fail, 3)
		tt.fail = 0
	})
}

func TestWaitingForRulesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tt := newRuleTable(2)
		k := keep(t, tt)
		began := time.Now()
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		k.await(limited, t.Context(), 3)
		require.Equal(t, time.Second, time.Since(began))

		over, end := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Second)
			end()
		}()
		k.await(t.Context(), over, 3)
		require.Equal(t, 2*time.Second, time.Since(began))

		go func() {
			time.Sleep(time.Second)
			tt.publish(&flowcontrol.Book{Version: 7})
		}()
		k.await(t.Context(), t.Context(), 3)
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

func TestEachLeaderProposesTheNewestRules(t *testing.T) {
	rule := flowcontrol.Rule{Pattern: flowcontrol.Pattern{Scope: "s"}, Limits: flowcontrol.Limits{Concurrency: 7}, Version: 1, ModifiedAt: 5}
	source := newRuleTable(0)
	c := newReplicaSet(t, func(c *replicaSet) { c.rules = source })
	first := c.leader()
	source.publish(&flowcontrol.Book{Version: 1, Rules: []flowcontrol.Rule{rule}})
	c.hosts[first].p.AwaitRules(t.Context(), 1)
	c.requireRules(&flowcontrol.Book{Version: 1, Rules: []flowcontrol.Rule{rule}})

	c.kill(first)
	rule.Version, rule.Limits.Concurrency = 2, 3
	source.publish(&flowcontrol.Book{Version: 2, Rules: []flowcontrol.Rule{rule}}) // there is no leader
	second := c.leader(first)
	c.hosts[second].p.AwaitRules(t.Context(), 2)
	c.requireRules(&flowcontrol.Book{Version: 2, Rules: []flowcontrol.Rule{rule}})

	c.start(first)
	c.requireRules(&flowcontrol.Book{Version: 2, Rules: []flowcontrol.Rule{rule}})
	for _, p := range c.partitions() {
		p.AwaitRules(t.Context(), 2) // followers return immediately
	}
}

// requireRules waits until every running replica has a rule book.
func (c *replicaSet) requireRules(want *flowcontrol.Book) {
	c.t.Helper()
	for _, p := range c.partitions() {
		require.Eventually(c.t, func() bool {
			view := p.tables.View()
			defer view.Close()
			got, err := view.Rules()
			require.NoError(c.t, err)
			return got.Version >= want.Version
		}, time.Minute, time.Millisecond)
		view := p.tables.View()
		got, err := view.Rules()
		view.Close()
		require.NoError(c.t, err)
		require.Equal(c.t, want, got)
	}
}
