package store

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/internal/ids"
	"platform/partition/journal"
)

// A log entry notifies very many invocations twice. The second notification of each reads which ones it has, from the rows of
// the entry.
func TestNotifyingManyInvocationsReadsEachRowOnce(t *testing.T) {
	const invocations = 150_000
	txn := partition(t, open(t), 1).Begin()
	defer txn.Discard()
	id := func(i uint32) ids.Invocation {
		return ids.NewInvocation(1, [16]byte(binary.LittleEndian.AppendUint32(make([]byte, 12, 16), i)))
	}
	for i := range uint32(invocations) {
		txn.PutNotified(id(i), journal.NumberedSignal(17), journal.Succeeded)
	}
	began := time.Now()
	for i := range uint32(invocations) {
		of, found := id(i), 0
		prefix := txn.space.invocation(nil, tableNotified, &of)
		txn.eachNotified(&of, prefix, func([]byte) bool { found++; return true })
		require.Equal(t, 1, found)
	}
	require.Less(t, time.Since(began), 30*time.Second)
}

func TestRowsOfNotificationsAreFoundInAnyWriteSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var txn Txn
		txn.space = space{partition: 1}
		all := []ids.Invocation{ids.NewInvocation(1, [16]byte{1}), ids.NewInvocation(1, [16]byte{2}), ids.NewInvocation(2, [16]byte{1})}
		put := func(n int) {
			for range n {
				id := rapid.SampledFrom(all).Draw(t, "id")
				note := journal.Completion(rapid.Uint32Range(0, 300).Draw(t, "completion"))
				key := txn.space.notified(nil, &id, &note)
				if rapid.Bool().Draw(t, "another table") {
					key[prefixLen-1] = tableJournal
				}
				txn.small.put(key, nil)
			}
		}
		for range 3 {
			put(rapid.IntRange(0, 2*fewScanned).Draw(t, "rows"))
			for _, id := range all {
				prefix := txn.space.invocation(nil, tableNotified, &id)
				var found, want [][]byte
				txn.eachNotified(&id, prefix, func(key []byte) bool { found = append(found, key); return true })
				for _, r := range txn.small.rows {
					if bytes.HasPrefix(r.key, prefix) {
						want = append(want, r.key)
					}
				}
				slices.SortFunc(found, bytes.Compare)
				slices.SortFunc(want, bytes.Compare)
				require.Equal(t, want, found)
			}
			if rapid.Bool().Draw(t, "reset") {
				txn.reset()
			}
		}
	})
}
