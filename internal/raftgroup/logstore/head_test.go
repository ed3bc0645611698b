package logstore

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// TestLargeEntriesAreReadWhileTheLogIsCut reads entries in chunks that are removed
// meanwhile, which is no damage.
func TestLargeEntriesAreReadWhileTheLogIsCut(t *testing.T) {
	s, closeIt := openStorage(t, t.TempDir())
	defer closeIt()
	data := make([]byte, largeEntry+chunkSize)
	for i := range uint64(60) {
		require.NoError(t, s.StoreLog(&raft.Log{Index: i + 1, Term: 1, Type: raft.LogCommand, Data: data}))
		ended := make(chan error, 2)
		begun := make(chan struct{}, 2)
		for _, read := range []func(*raft.Log) error{
			func(log *raft.Log) error { return s.GetLog(i+1, log) },
			func(log *raft.Log) error { return s.GetLogHead(i+1, 16<<10, log) },
		} {
			go func() {
				err := read(new(raft.Log))
				begun <- struct{}{}
				for err == nil {
					err = read(new(raft.Log))
				}
				ended <- err
			}()
		}
		<-begun
		<-begun
		require.NoError(t, s.DeleteRange(i+1, i+1))
		require.Equal(t, raft.ErrLogNotFound, <-ended)
		require.Equal(t, raft.ErrLogNotFound, <-ended)
	}
}
