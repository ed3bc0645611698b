package logstore

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// FuzzEntry: a stored entry whose checksum holds is refused or read, and stays the
// same when it is stored again.
func FuzzEntry(f *testing.F) {
	log := &raft.Log{Term: 3, Type: raft.LogCommand, Data: []byte("data"), Extensions: []byte("x"), AppendedAt: time.Unix(0, 77)}
	f.Add(slices.Concat(appendEntryHeader(nil, log), log.Extensions, log.Data))
	f.Add(appendEntryHeader(nil, &raft.Log{}))
	// Lengths that are right only if their sum overflows.
	lengths := binary.AppendUvarint(binary.AppendUvarint([]byte{entryFormat, 0, 3, 0}, math.MaxUint64), 4)
	f.Add(append(lengths, "abc"...))
	f.Fuzz(func(t *testing.T, body []byte) {
		key := logKey(3, 9)
		read := func(body []byte) (log raft.Log, err error) {
			return log, decodeEntry(key, binary.LittleEndian.AppendUint32(bytes.Clone(body), entryChecksum(key, body)), &log)
		}
		log, err := read(body)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		again, err := read(slices.Concat(appendEntryHeader(nil, &log), log.Extensions, log.Data))
		require.NoError(t, err)
		require.Equal(t, log, again)
	})
}
