package store

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// The child of the crash test commits batches to partition 1, flushes now and then,
// and copies partition 1 over partition 2. It says on its output what must be there
// after it is killed.
const (
	crashDir = "STORE_CRASH_DIR"
	source   = 1
	target   = 2
)

// runCrashChild runs the child in a process that was started as one.
func runCrashChild() bool {
	dir := os.Getenv(crashDir)
	if dir == "" {
		return false
	}
	if err := crashChild(dir, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func crashChild(dir string, out io.Writer) error {
	db, err := Open(dir, Options{MemTableBytes: 1 << 20, LargeRowBytes: 110})
	if err != nil {
		return err
	}
	from, err := db.Partition(source)
	if err != nil {
		return err
	}
	to, err := db.Partition(target)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "ready", 0)
	index, _ := from.Applied()
	for {
		index++
		txn := from.Begin()
		if err := applyBatch(txn, index); err != nil {
			return err
		}
		if err := txn.Commit(index, 1); err != nil {
			return err
		}
		switch rand.IntN(60) {
		case 0:
			err = childFlush(db, out, index)
		case 1:
			err = copyPartition(context.Background(), from, to)
			fmt.Fprintln(out, "imported", index)
		}
		if err != nil {
			return err
		}
	}
}

func childFlush(db *DB, out io.Writer, index uint64) error {
	wait, err := db.Flush()
	if err != nil {
		return err
	}
	if err := wait(context.Background()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "flushed", index)
	return err
}

// copyPartition replaces the state of one partition by that of another.
func copyPartition(ctx context.Context, from, to *Partition) error {
	e, err := from.Export()
	if err != nil {
		return err
	}
	defer e.Close()
	i, err := to.Import()
	if err != nil {
		return err
	}
	if err := e.Each(ctx, i.Put); err != nil {
		return err
	}
	index, term := e.Applied()
	return i.Commit(ctx, index, term)
}

// applyBatch makes changes that depend on the index and the state only.
func applyBatch(s machine.State, index uint64) error {
	rnd := rand.New(rand.NewPCG(index, 1))
	s.Meta().Clock = int64(index)
	for range 1 + rnd.IntN(8) {
		id := testID(byte(rnd.IntN(20)))
		inv, err := s.Invocation(id)
		if err != nil {
			return err
		}
		o := machine.Object{Service: "S", Key: fmt.Sprint(rnd.IntN(5))}
		switch {
		case inv == nil:
			inv = &machine.Invocation{ID: id, Status: machine.Invoked, Attempt: index}
		case inv.Status == machine.Completed:
			s.DeleteJournal(id, inv.Length)
			s.DeleteInvocation(id)
			s.DeleteTimer(machine.Timer{At: 1, ID: id})
			continue
		case rnd.IntN(4) == 0:
			inv.Status = machine.Completed
			s.PutTimer(machine.Timer{At: 1, ID: id})
			s.DeleteValue(o, []byte("last"))
		}
		for range 1 + rnd.IntN(12) {
			width := 100
			if index%10 == 0 {
				width = 6 << 10 // stored in a blob file
			}
			s.AppendEntry(id, inv.Length, journal.Entry{Type: journal.Run, AppendedAt: int64(index), Payload: fmt.Appendf(nil, "%0*d", width, index)})
			s.PutNotified(id, journal.Completion(inv.Length), journal.Succeeded)
			inv.Length++
		}
		s.PutInvocation(inv)
		s.PutValue(o, []byte("last"), fmt.Append(nil, index))
		s.PutLock(o, machine.Lock{Holder: id})
		if err := applyPromise(s, rnd, o, id); err != nil {
			return err
		}
	}
	sent, err := s.LastSent(7)
	if err != nil {
		return err
	}
	s.PutOutgoing(7, sent+1, &machine.Complete{Result: journal.Result{Value: fmt.Append(nil, index)}})
	s.DeleteOutgoing(7, sent-min(sent, 5))
	return nil
}

// applyPromise waits for a promise, completes it or forgets it.
func applyPromise(s machine.State, rnd *rand.Rand, o machine.Object, id ids.Invocation) error {
	key := fmt.Sprint("promise", rnd.IntN(3))
	p, err := s.Promise(o, key)
	switch {
	case err != nil:
		return err
	case p.Result != nil:
		s.DeletePromise(o, key)
	case len(p.Waiting) == 3:
		s.PutPromise(o, key, completedWith(id.String()))
	default:
		p.Waiting = append(slices.Clip(p.Waiting), machine.Sink{Caller: id, Completion: 1})
		s.PutPromise(o, key, p)
	}
	return nil
}

// describe lists everything that applyBatch can have written.
func describe(t require.TestingT, s machine.State) (all []string) {
	add := func(what string, v any, err error) {
		require.NoError(t, err)
		all = append(all, fmt.Sprintf("%s: %v", what, v))
	}
	add("meta", *s.Meta(), nil)
	for n := range byte(20) {
		id := testID(n)
		inv, err := s.Invocation(id)
		length := uint32(0)
		if inv != nil {
			length = inv.Length
		}
		add("invocation", inv, err)
		for i := range length {
			e, err := s.Entry(id, i)
			add("entry", e, err)
			how, err := s.Notified(id, journal.Completion(i))
			add("notified", how, err)
		}
		how, err := s.Notified(id, journal.Completion(length))
		add("notified behind", how, err)
		due, err := s.HasTimer(machine.Timer{At: 1, ID: id})
		add("timer", due, err)
	}
	for n := range 5 {
		o := machine.Object{Service: "S", Key: fmt.Sprint(n)}
		add("values", listValues(t, s, o), nil)
		for _, p := range listPromises(t, s.Promises(o)) {
			add("promise "+p.Key, describePromise(p.Promise), nil)
		}
		l, err := s.Lock(o)
		add("lock", l, err)
	}
	sent, err := s.LastSent(7)
	add("sent", sent, err)
	return all
}

// requireReplay checks that a partition is what the first entries of the log make,
// as many as it says.
func requireReplay(t *testing.T, db *DB, id uint32) (index uint64) {
	p := partition(t, db, id)
	index, _ = p.Applied()
	twin := machinetest.New()
	for i := uint64(1); i <= index; i++ {
		require.NoError(t, applyBatch(twin, i))
	}
	require.NoError(t, p.Settle())
	txn := p.Begin()
	found := describe(t, txn)
	txn.Discard()
	require.Equal(t, describe(t, twin), found, "partition %d after %d entries", id, index)
	requireEmpty(t, db, p.space.other())
	requireChunks(t, p)

	v := p.View()
	defer v.Close()
	first, messages, _, err := v.Outgoing(7, 0, 100, 1<<20)
	require.NoError(t, err)
	for i, m := range messages {
		require.Equal(t, twin.Outgoing(7, first+uint64(i)), m)
	}
	return index
}

func requireEmpty(t *testing.T, db *DB, s space) {
	lower, upper := s.bounds()
	it, err := db.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	require.NoError(t, err)
	require.False(t, it.First(), "rows in the generation that is not in use")
	require.NoError(t, it.Close())
}

func TestTablesAreAPrefixOfTheLogAfterAKill(t *testing.T) {
	dir := t.TempDir()
	for round := range 12 {
		flushed, imported := killChild(t, dir, time.Duration(rand.IntN(200))*time.Millisecond)
		db := openAt(t, dir)
		at := requireReplay(t, db, source)
		require.GreaterOrEqual(t, at, flushed, "round %d: what was flushed is there", round)
		copied := requireReplay(t, db, target)
		require.GreaterOrEqual(t, copied, imported, "round %d: what was imported is there", round)
		require.NoError(t, db.Close())
	}
}

// killChild runs the child and kills it a while after it has begun.
func killChild(t *testing.T, dir string, after time.Duration) (flushed, imported uint64) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashDir+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	var killer *time.Timer
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var what string
		var index uint64
		if n, _ := fmt.Sscan(lines.Text(), &what, &index); n != 2 {
			continue // cut off by the kill
		}
		switch what {
		case "ready":
			killer = time.AfterFunc(after, func() { _ = child.Process.Kill() })
		case "flushed":
			flushed = index
		case "imported":
			imported = index
		}
	}
	require.NotNil(t, killer, "the child has begun")
	killer.Stop()
	require.ErrorContains(t, child.Wait(), "killed")
	return flushed, imported
}
