package partition

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/store"
)

// scanned is tables to scan, without a replica.
type scanned struct {
	t      *testing.T
	tables *store.Partition
	index  uint64
}

func newScanned(t *testing.T) *scanned {
	db, err := store.Open(t.TempDir(), store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	tables, err := db.Partition(0)
	require.NoError(t, err)
	return &scanned{t: t, tables: tables}
}

func (s *scanned) change(change func(txn *store.Txn)) {
	txn := s.tables.Begin()
	change(txn)
	s.index++
	require.NoError(s.t, txn.Commit(s.index, 1))
}

// all reads all pages; between is called after each.
func (s *scanned) all(scan Scan, between func()) (rows []Row, matched, read int) {
	if scan.Keys == (KeyRange{}) {
		scan.Keys = AllKeys
	}
	for {
		view := s.tables.View()
		sc := scanner{p: &Partition{}, s: &scan, view: view}
		require.NoError(s.t, sc.run())
		require.NoError(s.t, view.Close())
		rows, matched, read = append(rows, sc.page.Rows...), matched+sc.page.Matched, read+sc.page.Read
		if sc.page.Next == nil {
			return rows, matched, read
		}
		scan.From = sc.page.Next
		if between != nil {
			between()
		}
	}
}

func scanID(n int) ids.Invocation {
	return ids.NewInvocation(ids.HashKey(fmt.Sprint("k", n)), [16]byte{byte(n), byte(n >> 8), 1})
}

func scanInvocation(n int, status machine.Status) *machine.Invocation {
	inv := &machine.Invocation{ID: scanID(n), Status: status, CreatedAt: int64(n), Target: machine.Target{
		Service: fmt.Sprint("S", n%3), Key: fmt.Sprint("k", n), Handler: "h", Type: target.ObjectExclusive,
	}}
	if status == machine.Completed {
		inv.Result = &journal.Result{}
	}
	return inv
}

const scanMany = 3000

// fill stores invocations, every fourth of them completed, and one state update.
func (s *scanned) fill() {
	s.change(func(txn *store.Txn) {
		for n := range scanMany {
			status := machine.Scheduled
			if n%4 == 0 {
				status = machine.Completed
			}
			txn.PutInvocation(scanInvocation(n, status))
		}
		txn.PutInvocation(&machine.Invocation{ID: ids.NewInvocation(5, [16]byte{9}), Status: machine.Inboxed,
			Target: machine.Target{Service: "S0", Key: "k0", Type: target.StateUpdate}})
	})
}

func TestScanReadsNoMoreThanNecessary(t *testing.T) {
	s := newScanned(t)
	s.fill()
	seven := ids.HashKey("k7")
	for name, c := range map[string]struct {
		scan          Scan
		matched, read int
	}{
		"all":                {Scan{Table: Invocations}, scanMany, scanMany + 1},
		"whole":              {Scan{Table: Invocations, Detail: Whole}, scanMany, scanMany + 1},
		"by id":              {Scan{Table: Invocations, ID: scanID(77)}, 1, 1},
		"by an unknown id":   {Scan{Table: Invocations, ID: ids.NewInvocation(1, [16]byte{1})}, 0, 1},
		"by partition key":   {Scan{Table: Invocations, Keys: KeyRange{seven, seven}}, 1, 1},
		"completed":          {Scan{Table: Invocations, Statuses: []machine.Status{machine.Completed}}, scanMany / 4, scanMany / 4},
		"live":               {Scan{Table: Invocations, Statuses: []machine.Status{machine.Scheduled, machine.Invoked}}, scanMany * 3 / 4, scanMany*3/4 + 1},
		"of a service":       {Scan{Table: Invocations, Detail: Heads, Services: []string{"S1"}}, scanMany / 3, scanMany + 1},
		"id and wrong other": {Scan{Table: Invocations, ID: scanID(77), Services: []string{"other"}}, 0, 1},
	} {
		rows, matched, read := s.all(c.scan, nil)
		require.Equal(t, c.matched, matched, name)
		require.Equal(t, c.read, read, name)
		if c.scan.Detail != Counts {
			require.Len(t, rows, matched, name)
		}
	}
}

// Invocations complete while they are scanned.
func TestScanVisitsEachInvocationOnce(t *testing.T) {
	s := newScanned(t)
	s.fill()
	round := 0
	rows, _, _ := s.all(Scan{Table: Invocations, Detail: Whole}, func() {
		s.change(func(txn *store.Txn) {
			for n := round * 500; n < (round+1)*500; n++ {
				txn.PutInvocation(scanInvocation(n, machine.Completed))
			}
		})
		round++
	})
	require.Positive(t, round)
	seen := map[ids.Invocation]bool{}
	for i, r := range rows {
		require.False(t, seen[r.Record.ID])
		seen[r.Record.ID] = true
		require.True(t, i == 0 || rows[i-1].Record.ID.Compare(r.Record.ID) < 0, "ordered by ID")
	}
	require.Len(t, seen, scanMany)
}

func TestHeadsArePrefixesOfRecords(t *testing.T) {
	s := newScanned(t)
	s.fill()
	heads, _, _ := s.all(Scan{Table: Invocations, Detail: Heads, ID: ids.Invocation{}, Services: []string{"S2"}, Objects: []string{"k2"}}, nil)
	require.Len(t, heads, 1)
	require.Equal(t, &machine.Invocation{ID: scanID(2), Target: scanInvocation(2, 0).Target, Status: machine.Scheduled}, heads[0].Record.Invocation)
}

func TestScanOfObjects(t *testing.T) {
	s := newScanned(t)
	s.change(func(txn *store.Txn) {
		for _, scope := range []string{"", "a", "b"} {
			for _, service := range []string{"A", "B", "C"} {
				for n := range 300 {
					o := machine.Object{Scope: scope, Service: service, Key: fmt.Sprint("k", n)}
					txn.PutValue(o, []byte("x"), []byte("value"))
				}
			}
		}
		o := machine.Object{Service: "B", Key: "k1"}
		txn.PutLock(o, machine.Lock{Holder: scanID(1), Head: 1, Tail: 3})
		txn.PutWaiting(o, 1, scanID(2))
		txn.PutWaiting(o, 2, scanID(3))
		txn.PutPromise(o, "p", machine.Promise{Result: &journal.Result{Value: []byte("done")}})
		txn.PutInvocation(&machine.Invocation{ID: scanID(1), Status: machine.Suspended, RunningAt: 99})
		txn.AppendEntry(scanID(1), 0, journal.Entry{Type: journal.Input, Payload: []byte("abc")})
		txn.AppendEntry(scanID(1), 1, journal.Entry{Type: journal.Run})
		txn.AppendEntry(scanID(2), 0, journal.Entry{Type: journal.Input})
	})
	unscoped := ""
	for name, c := range map[string]struct {
		scan          Scan
		matched, most int
	}{
		"all":                {Scan{Table: State}, 2700, 2700},
		"of a service":       {Scan{Table: State, Services: []string{"B"}}, 900, 910},
		"of an object":       {Scan{Table: State, Services: []string{"B"}, Objects: []string{"k7"}}, 3, 20},
		"of a scope":         {Scan{Table: State, Scope: &unscoped, Services: []string{"B"}, Objects: []string{"k7"}}, 1, 10},
		"of a partition key": {Scan{Table: State, Keys: KeyRange{ids.HashKey("k7"), ids.HashKey("k7")}}, 3, 2700},
		"of two services":    {Scan{Table: State, Services: []string{"A", "C"}}, 1800, 2700},
		"journal":            {Scan{Table: Journal, ID: scanID(1)}, 2, 2},
		"locks":              {Scan{Table: Locks}, 1, 1},
		"waiting":            {Scan{Table: Waiting}, 2, 2},
		"promises":           {Scan{Table: Promises}, 1, 1},
	} {
		rows, matched, read := s.all(c.scan, nil)
		require.Equal(t, c.matched, matched, name)
		require.Len(t, rows, matched, name)
		require.LessOrEqual(t, read, c.most, name)
	}
	second, _, _ := s.all(Scan{Table: Journal, ID: scanID(1), From: FromEntry(scanID(1), 1)}, nil)
	require.Len(t, second, 1)
	require.EqualValues(t, 1, second[0].Index)
	entries, _, _ := s.all(Scan{Table: Journal, Detail: Heads, ID: scanID(1)}, nil)
	require.Nil(t, entries[0].Entry.Payload)
	require.Equal(t, 3, entries[0].Size)
	entries, _, _ = s.all(Scan{Table: Journal, Detail: Whole, ID: scanID(1)}, nil)
	require.Equal(t, "abc", string(entries[0].Entry.Payload))
	locks, _, _ := s.all(Scan{Table: Locks, Detail: Whole}, nil)
	require.Equal(t, Row{ID: scanID(1), Object: machine.Object{Service: "B", Key: "k1"}, Since: 99}, locks[0])
	waiting, _, _ := s.all(Scan{Table: Waiting}, nil)
	require.Equal(t, scanID(2), waiting[0].ID)
	require.EqualValues(t, 1, waiting[0].Index)
}

// The tables store these values in chunks.
func TestLargeRowsAreReadLikeOthers(t *testing.T) {
	s := newScanned(t)
	large := bytes.Repeat([]byte("0123456789abcdef"), 40<<10)
	ended := scanInvocation(4, machine.Completed)
	ended.Result.Value = large
	o := machine.Object{Service: "S", Key: "k"}
	s.change(func(txn *store.Txn) {
		for n := range 9 {
			txn.PutInvocation(scanInvocation(n, machine.Scheduled))
		}
		txn.PutInvocation(ended)
		txn.AppendEntry(scanID(1), 0, journal.Entry{Type: journal.Input, Payload: large})
		txn.AppendEntry(scanID(1), 1, journal.Entry{Type: journal.Run})
		txn.PutValue(o, []byte("a"), large)
		txn.PutValue(o, []byte("b"), []byte("small"))
		txn.PutPromise(o, "p", machine.Promise{Result: &journal.Result{Value: large}})
	})
	rows, _, _ := s.all(Scan{Table: Invocations, Detail: Whole, Statuses: []machine.Status{machine.Completed}}, nil)
	require.Len(t, rows, 1)
	require.Equal(t, ended, rows[0].Record.Invocation)
	for _, detail := range []Detail{Counts, Heads, Whole} {
		pages := 1
		_, matched, read := s.all(Scan{Table: Invocations, Detail: detail}, func() { pages++ })
		require.Equal(t, 9, matched)
		require.Equal(t, 9, read)
		require.Equal(t, 2, pages, "the page ends with the large row")
	}
	rows, _, _ = s.all(Scan{Table: Journal, Detail: Whole, ID: scanID(1)}, nil)
	require.Len(t, rows, 2)
	require.Equal(t, large, rows[0].Entry.Payload)
	for _, detail := range []Detail{Heads, Whole} {
		rows, _, _ = s.all(Scan{Table: State, Detail: detail}, nil)
		require.Len(t, rows, 2)
		require.Equal(t, len(large), rows[0].Size)
	}
	require.Equal(t, large, rows[0].Value)
	rows, _, _ = s.all(Scan{Table: Promises, Detail: Whole}, nil)
	require.Len(t, rows, 1)
	require.Equal(t, large, rows[0].Promise.Result.Value)
}
