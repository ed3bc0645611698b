package partition

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"weak"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup"
	"platform/internal/raftgroup/logstore"
)

// memoryDisk gives each host an in-memory disk that tracks what was synced.
func memoryDisk(c *replicaSet) { c.newDisk = func() *vfs.MemFS { return vfs.NewCrashableMem() } }

// powerLoss simulates a power loss of hosts: of their unsynced data, random blocks and
// directory entries remain. Messages and responses that they send afterwards are ignored.
func (c *replicaSet) powerLoss(rng *rand.Rand, hosts ...int) {
	c.t.Helper()
	var names []string
	for _, i := range hosts {
		names = append(names, c.hosts[i].name)
		c.lost.Store(weak.Make(c.hosts[i].p), true)
	}
	c.worker.crashes.Add(1)
	c.network.sever(names...)
	disks := make([]*vfs.MemFS, len(hosts))
	kept := []int{0, 0, 30, 70, 100}[rng.IntN(5)]
	for n, i := range hosts {
		disks[n] = c.hosts[i].disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: rand.New(rand.NewPCG(rng.Uint64(), 1))})
	}
	var wg sync.WaitGroup
	for _, i := range hosts {
		wg.Go(func() { c.kill(i) })
	}
	wg.Wait()
	for n, i := range hosts {
		require.NoError(c.t, c.hosts[i].hard.Close())
		c.hosts[i].disk, c.hosts[i].hard = disks[n], nil
	}
	c.network.turnOn(names...)
}

// powerRounds is the number of power losses: POWER_ROUNDS for the long form.
func powerRounds(t *testing.T, short int) int {
	text := os.Getenv("POWER_ROUNDS")
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// One host or all of them repeatedly lose power under load. No response is lost, no call
// takes effect twice, no acknowledged step is repeated, and every host restarts without
// intervention.
func TestPowerLoss(t *testing.T) {
	losePower(t, 12, false)
}

// Some of the log entries are so large that they are table files.
func TestPowerLossWithLargeEntries(t *testing.T) {
	losePower(t, 3, true)
}

func losePower(t *testing.T, rounds int, large bool) {
	seed := rand.Uint64()
	if text := os.Getenv("POWER_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("POWER_SEED=%d reproduces the hosts and blocks, but not the timing", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	c, l := loaded(t, memoryDisk)
	if large {
		inputs := rand.New(rand.NewPCG(seed, 1))
		l.clients.Go(func() { l.largeClient(inputs) })
	}
	one, all := 0, 0
	for range powerRounds(t, rounds) {
		if large && rng.IntN(2) == 0 {
			l.progressLarge(1)
		}
		l.progress(int64(20 + rng.IntN(100)))
		if rng.IntN(3) == 0 {
			if err := c.hosts[c.leader()].p.Checkpoint(t.Context()); err != nil {
				t.Logf("checkpoint: %v", err) // for instance, the leader has changed
			}
		}
		hosts := []int{0, 1, 2}
		if rng.IntN(2) == 0 {
			hosts = []int{rng.IntN(3)}
			one++
		} else {
			all++
		}
		c.powerLoss(rng, hosts...)
		for _, i := range hosts {
			c.start(i)
		}
	}
	l.progress(50)
	l.finish(t)
	c.requireSame(0, 1, 2)
	t.Logf("%d power losses of one host, %d of all, %d responses to large calls", one, all, l.large.Load())
}

// A bit is flipped in the write-ahead log of a host that has lost power, and another host
// loses power right after the first is back. The damage is harmless or detected; if it is
// detected, the host is rebuilt as a new replica.
func TestDamagedDiskIsRebuilt(t *testing.T) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
	c, l := loaded(t, memoryDisk)
	noticed := 0
	for range powerRounds(t, 3) {
		l.progress(int64(20 + rng.IntN(100)))
		i := rng.IntN(3)
		c.powerLoss(rng, i)
		c.hosts[i].flipBit(t, rng)
		if err := c.tryStart(i); err != nil {
			require.True(t, errors.Is(err, raftgroup.ErrQuarantined) || errors.Is(err, logstore.ErrCorrupt), "%v", err)
			noticed++
			c.rebuild(i)
		}
		c.reconcile(0, 1, 2)
		other := (i + 1) % 3
		c.powerLoss(rng, other)
		l.progress(20)
		c.start(other)
	}
	l.progress(50)
	l.finish(t)
	c.requireSame(0, 1, 2)
	t.Logf("damage detected %d times", noticed)
}

// flipBit damages the write-ahead log of a host's log database: the newest file that is not
// empty. There may be none, if the database has just been flushed.
func (h *host) flipBit(t *testing.T, rng *rand.Rand) {
	t.Helper()
	names, err := h.disk.List("log")
	require.NoError(t, err)
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		if filepath.Ext(name) == ".log" && h.flipBitOf(t, rng, filepath.Join("log", name)) {
			return
		}
	}
}

// flipBitOf returns false if the file is empty. The zeros at its end are not part of the log.
func (h *host) flipBitOf(t *testing.T, rng *rand.Rand, path string) bool {
	t.Helper()
	f, err := h.disk.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	data, err := io.ReadAll(f)
	require.NoError(t, err)
	data = bytes.TrimRight(data, "\x00")
	if len(data) == 0 {
		require.NoError(t, f.Close())
		return false
	}
	at := rng.IntN(len(data))
	_, err = f.WriteAt([]byte{data[at] ^ 1<<rng.IntN(8)}, int64(at))
	require.NoError(t, err)
	require.NoError(t, errors.Join(f.Sync(), f.Close()))
	return true
}

// rebuild discards a quarantined host's data and starts it as a new replica.
func (c *replicaSet) rebuild(i int) {
	t, h := c.t, c.hosts[i]
	logs, tables, err := h.open(t)
	if err != nil {
		require.NoError(t, h.disk.RemoveAll("log")) // a node renames it
		logs, tables = h.reopen(t)
	}
	require.NoError(t, h.record(t).Retire())
	require.NoError(t, Destroy(t.Context(), logs, tables, h.record(t), 0))
	require.NoError(t, errors.Join(tables.Close(), logs.Close()))
	h.replica, h.join = h.record(t).Record().Replica, true
	c.start(i)
}
