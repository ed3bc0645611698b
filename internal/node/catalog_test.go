package node

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/admin"
	"platform/internal/fabric"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/invoker"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
)

// restless is partitions that three nodes lead by turns: after each page another one.
type restless struct {
	partitions [][]partition.Record // sorted by id
	leader     string               // empty: there is none any more
	scans      []partition.Scan
	pages      map[string]int // by who gave them
	after      func()         // called after each page, unless nil
}

// replica is one of a restless partition.
type replica struct {
	fabric.Replica
	w       *restless
	address string
	id      uint32
}

const restlessPage = 3

// Scan implements fabric.Replica as far as statuses go.
func (r replica) Scan(_ context.Context, s *partition.Scan) (page partition.Page, err error) {
	w := r.w
	if r.address != w.leader {
		return page, &fabric.NotLeaderError{Partition: r.id, Node: r.address, Leader: raftgroup.Leader{}}
	}
	w.scans = append(w.scans, *s)
	for _, rec := range w.partitions[r.id] {
		if bytes.Compare(rec.ID[:], s.From) < 0 || len(s.Statuses) > 0 && !slices.Contains(s.Statuses, rec.Status) {
			continue
		}
		if len(page.Rows) == restlessPage {
			page.Next = bytes.Clone(rec.ID[:])
			break
		}
		page.Rows = append(page.Rows, partition.Row{Record: rec})
	}
	w.pages[r.address]++
	w.leader = map[string]string{"a": "b", "b": "c", "c": "a"}[r.address]
	if w.after != nil {
		w.after()
	}
	return page, nil
}

func (w *restless) catalog() *catalog {
	return &catalog{newRouter(uint32(len(w.partitions)), fabric.DirectoryConfig{
		Remote:       func(address string, id uint32) fabric.Replica { return replica{w: w, address: address, id: id} },
		Replicas:     func(uint32) []string { return []string{"a", "b", "c"} },
		ReadPatience: 10 * time.Millisecond,
	})}
}

const each = 20 // invocations of a partition

// newRestless has invocations of all statuses in two partitions, several of which were
// created at the same time.
func newRestless() *restless {
	w := &restless{leader: "a", pages: map[string]int{}}
	for id := range 2 {
		var records []partition.Record
		for n := range each {
			records = append(records, partition.Record{Invocation: &machine.Invocation{
				ID: ids.NewInvocation(uint64(id)<<63|uint64(n), [16]byte{1, byte(n)}), Status: machine.Status(1 + n%6), CreatedAt: int64(7 * n % 5),
				Target: machine.Target{Service: "S", Handler: "h"},
			}})
			switch records[n].Status {
			case machine.Suspended:
				records[n].Await = &journal.Future{}
			case machine.Completed:
				records[n].Result = &journal.Result{}
			}
		}
		w.partitions = append(w.partitions, records)
	}
	return w
}

// list reads all pages of a listing.
func (w *restless) list(t *testing.T, q admin.Query) (found []*admin.Invocation) {
	c := w.catalog()
	for {
		page, err := c.List(t.Context(), q)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Invocations), q.Limit)
		found = append(found, page.Invocations...)
		if page.Next == "" {
			return found
		}
		q.Cursor = page.Next
	}
}

func TestListingsAreCompleteWhileLeadersChange(t *testing.T) {
	for _, oldest := range []bool{true, false} {
		t.Run(fmt.Sprint("oldest first ", oldest), func(t *testing.T) {
			w := newRestless()
			all := slices.SortedFunc(slices.Values(slices.Concat(w.partitions...)), func(a, b partition.Record) int {
				return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), a.ID.Compare(b.ID))
			})
			if !oldest {
				slices.Reverse(all)
			}
			var want, got []string
			for _, r := range all {
				want = append(want, r.ID.String())
			}
			for _, inv := range w.list(t, admin.Query{Limit: 7, OldestFirst: oldest}) {
				got = append(got, inv.ID)
			}
			require.Equal(t, want, got)
			require.Len(t, w.pages, 3, "each node gave some")
		})
	}
}

func TestListingsMeetInvocationsThatEndMeanwhileOnce(t *testing.T) {
	w := newRestless()
	w.after = func() {
		for _, records := range w.partitions {
			i := slices.IndexFunc(records, func(r partition.Record) bool { return r.Status != machine.Completed })
			if i >= 0 {
				ended := *records[i].Invocation
				ended.Status, ended.Result = machine.Completed, &journal.Result{}
				records[i] = partition.Record{Invocation: &ended}
			}
		}
	}
	page, err := w.catalog().List(t.Context(), admin.Query{Limit: 1000})
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, inv := range page.Invocations {
		seen[inv.ID] = true
	}
	require.Len(t, page.Invocations, 2*each)
	require.Len(t, seen, 2*each)
}

func TestListingsTellWhatLeadersKnowOfAttempts(t *testing.T) {
	w := newRestless()
	failure := &machine.AttemptFailure{Code: 500, Message: "no"}
	for _, records := range w.partitions {
		records[2].Attempts = &invoker.AttemptStatus{InFlight: true, RetryCount: 4, LastFailure: failure}
		records[8].Attempts = &invoker.AttemptStatus{RetryCount: 3}
		records[2].Pin.Deployment = "dp_1"
		records[4].Pin.Deployment, records[4].Failure = "dp_1", failure
	}
	running := w.list(t, admin.Query{Limit: 10, Statuses: []admin.Status{admin.StatusRunning}})
	require.Len(t, running, 2, "ready and backing off are stored as the same")
	for _, inv := range running {
		require.EqualValues(t, 4, inv.RetryCount)
		require.Equal(t, "[500 Internal] no", inv.LastFailure)
	}
	for _, s := range w.scans {
		require.Equal(t, []machine.Status{machine.Invoked}, s.Statuses, "others are not read")
	}
	paused := w.list(t, admin.Query{Limit: 10, Statuses: []admin.Status{admin.StatusPaused}, Deployments: []ids.Deployment{"dp_1"}})
	require.Len(t, paused, 2)
	require.Equal(t, "[500 Internal] no", paused[0].LastFailure)
	require.EqualValues(t, "dp_1", paused[0].PinnedDeploymentID)
	require.Len(t, w.list(t, admin.Query{Limit: 100, Statuses: []admin.Status{admin.StatusCompleted, admin.StatusScheduled}}), 14)
}

func TestLeadersAreAskedForNoMoreThanAListingShows(t *testing.T) {
	w := newRestless()
	w.list(t, admin.Query{Limit: 10, Services: []string{"S"}, Keys: []string{""}, Handlers: []string{"h"}, Scopes: []string{""}})
	unscoped := ""
	for _, s := range w.scans {
		s.From = nil
		require.Equal(t, partition.Scan{
			Table: partition.Invocations, Detail: partition.Whole, Keys: partition.AllKeys,
			Scope: &unscoped, Services: []string{"S"}, Objects: []string{""}, Handlers: []string{"h"},
		}, s)
	}
	w.scans = nil
	w.list(t, admin.Query{Limit: 10, Scopes: []string{"x", "y"}})
	for _, s := range w.scans {
		require.Nil(t, s.Scope, "of one of two")
	}
}

// TestDeploymentsInUseAreCountedWhileLeadersChange counts what is pinned, and what an
// attempt runs on that has stored nothing yet.
func TestDeploymentsInUseAreCountedWhileLeadersChange(t *testing.T) {
	w := newRestless()
	for _, records := range w.partitions {
		for n := range records {
			if n%2 == 0 {
				records[n].Pin.Deployment = "dp_1"
			}
		}
		records[5].Pin.Deployment = "dp_1" // has ended
		records[7].Attempts = &invoker.AttemptStatus{InFlight: true, Deployment: "dp_1"}
		records[13].Attempts = &invoker.AttemptStatus{Deployment: "dp_1"}
	}
	count, err := w.catalog().InUse(t.Context(), "dp_1")
	require.NoError(t, err)
	require.Equal(t, 2*(each/2+1), count)
	require.Len(t, w.pages, 3)
	for _, s := range w.scans {
		require.NotContains(t, s.Statuses, machine.Completed)
		require.Len(t, s.Statuses, int(machine.Completed)-1)
	}
}

func TestListingsThatCannotBeFinishedSayWhy(t *testing.T) {
	w := newRestless()
	w.after = func() { w.leader = "" }
	_, err := w.catalog().List(t.Context(), admin.Query{Limit: 10})
	require.ErrorIs(t, err, admin.ErrUnavailable)
	require.ErrorContains(t, err, "partition 0: this node finds no leader of it")
	_, err = w.catalog().InUse(t.Context(), "dp_1")
	require.ErrorIs(t, err, admin.ErrUnavailable, "what cannot be counted is not unused")

	w = newRestless()
	ctx, cancel := context.WithCancel(t.Context())
	w.after = func() { w.leader = ""; cancel() }
	_, err = w.catalog().List(ctx, admin.Query{Limit: 10})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, admin.ErrUnavailable, "nobody is there to be told")
}
