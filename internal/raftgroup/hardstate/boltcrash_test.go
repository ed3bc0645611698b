package hardstate

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/logstore/logstoretest"
)

const boltPage = 4096

// boltImage is a log in a bbolt file, and the hard-state file beside it, at a moment when
// nothing is under way.
type boltImage struct {
	file []byte
	hard *vfs.MemFS
	last uint64 // entry
	term uint64
}

// boltImages stores entries and terms and returns what is on disk after each step.
func boltImages(t *testing.T) (images []boltImage) {
	t.Helper()
	fs := vfs.NewCrashableMem()
	h, g := openHard(t, fs)
	path := filepath.Join(t.TempDir(), "log.db")
	s, err := logstore.OpenBolt(path, logstore.BoltOptions{Logger: quiet, MmapBytes: 1 << 18})
	require.NoError(t, err)
	w := WrapStorage(s, g)
	last, term := uint64(0), uint64(0)
	shoot := func() {
		file, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, h.Sync())
		images = append(images, boltImage{file, fs.CrashClone(vfs.CrashCloneCfg{}), last, term})
	}
	for step := range uint64(40) {
		if step%4 == 0 {
			term++
			require.NoError(t, w.SetUint64(keyCurrentTerm, term))
			require.NoError(t, w.SetUint64(keyVoteTerm, term))
			require.NoError(t, w.Set(keyVote, []byte("n1/a")))
			shoot()
		}
		logs := logstoretest.Logs(last+1, last+5)
		for _, l := range logs {
			l.Data, l.Term = bytes.Repeat([]byte{byte(step)}, 300), term
		}
		require.NoError(t, w.StoreLogs(logs))
		last += 5
		shoot()
	}
	require.NoError(t, s.Close())
	require.NoError(t, h.Close())
	return images
}

// changed are the pages, without those that begin a transaction, in which two images
// differ.
func changed(before, after []byte) (pages []int) {
	for at := 2 * boltPage; at < len(after); at += boltPage {
		if at >= len(before) || !bytes.Equal(before[at:at+boltPage], after[at:at+boltPage]) {
			pages = append(pages, at)
		}
	}
	return pages
}

// holds opens what is on a disk. It fails the test if entries of image are missing
// without an error.
func (image *boltImage) holds(t *testing.T, file []byte, what string) bool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.db")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	defer func() { require.NoError(t, os.Remove(path)) }()
	h, g := openHard(t, image.hard.CrashClone(vfs.CrashCloneCfg{}))
	defer func() { require.NoError(t, h.Close()) }()
	s, err := logstore.OpenBolt(path, logstore.BoltOptions{Logger: quiet, MmapBytes: 1 << 18})
	if err != nil {
		require.ErrorIs(t, err, logstore.ErrCorrupt, what)
		return false
	}
	defer func() { require.NoError(t, s.Close()) }()
	if _, _, err := Reconcile(s, g, logstore.Position{}); err != nil {
		require.ErrorIs(t, err, ErrQuarantined, what)
		return false
	}
	last, err := s.LastIndex()
	require.NoError(t, err)
	require.GreaterOrEqual(t, last, image.last, what)
	term, err := number(s, keyCurrentTerm)
	require.NoError(t, err)
	require.GreaterOrEqual(t, term, image.term, what)
	for i := range last {
		// One that is missing or damaged is noticed when it is read.
		if err := s.GetLog(i+1, new(raft.Log)); err != nil {
			require.True(t, errors.Is(err, logstore.ErrCorrupt) || errors.Is(err, raft.ErrLogNotFound), "%s: %v", what, err)
			return false
		}
	}
	return true
}

// TestPowerLossDuringAWriteOfTheMetadataLog cuts writes off: some of the pages of a
// transaction are on the disk, whole or torn, and the page that commits it is not, or is
// torn. Everything before is there.
func TestPowerLossDuringAWriteOfTheMetadataLog(t *testing.T) {
	images := boltImages(t)
	random := rand.New(rand.NewPCG(1, 2))
	count := 0
	for i, after := range images[1:] {
		before := images[i]
		pages := changed(before.file, after.file)
		for round := range 6 {
			file := slices.Clone(before.file)
			if grown := random.IntN(2) == 0; grown && len(after.file) > len(file) {
				file = append(file, make([]byte, len(after.file)-len(file))...)
			}
			for _, at := range pages {
				torn := []int{0, 512, 2048, boltPage}[random.IntN(4)]
				if round == 0 {
					torn = boltPage
				}
				if at+boltPage <= len(file) {
					copy(file[at:at+torn], after.file[at:])
				}
			}
			if round == 0 && len(after.file) == len(file) { // they are synced: the commit is torn
				for at := range 2 * boltPage {
					if at%boltPage < 50 {
						file[at] = after.file[at]
					}
				}
			}
			require.True(t, before.holds(t, file, fmt.Sprintf("step %d, round %d", i, round)), "step %d, round %d", i, round)
			count++
		}
	}
	t.Logf("%d power losses", count)
}

// TestDamagedMetadataLogIsNoticed takes synced pages back, tears them, flips bits and cuts
// the file: either everything is there, or something is missing and that is noticed.
func TestDamagedMetadataLogIsNoticed(t *testing.T) {
	images := boltImages(t)
	noticed, harmless := 0, map[string]int{}
	try := func(image boltImage, file []byte, kind string, at int) {
		if image.holds(t, file, fmt.Sprintf("%s at %d, %d entries", kind, at, image.last)) {
			harmless[kind]++
		} else {
			noticed++
		}
	}
	for i := range images {
		after := images[i]
		if i%4 == 1 {
			before := images[i-1].file
			for _, at := range changed(before, after.file) {
				for _, from := range []int{0, 2048} {
					file := slices.Clone(after.file)
					clear(file[at+from : at+boltPage])
					if at < len(before) {
						copy(file[at+from:at+boltPage], before[at+from:])
					}
					try(after, file, "lost write", at+from)
				}
			}
		}
		if i != len(images)-1 {
			continue
		}
		for at := 0; at < len(after.file); at += 4093 {
			file := slices.Clone(after.file)
			file[at] ^= 0x04
			try(after, file, "bit", at)
			try(after, after.file[:at], "cut", at)
		}
	}
	require.Positive(t, noticed)
	t.Logf("noticed %d times, harmless: %v", noticed, slices.Collect(maps.Keys(harmless)))
}
