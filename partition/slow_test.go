package partition

import (
	"context"
	"sync"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
)

// slowStorage stores no entries while slow is locked.
type slowStorage struct {
	logstore.Storage
	slow sync.RWMutex
}

func (s *slowStorage) StoreLogs(logs []*raft.Log) error {
	s.slow.RLock()
	defer s.slow.RUnlock()
	return s.Storage.StoreLogs(logs)
}

// After the process was starved, its leaderships are confirmed within a timeout, which a
// slow disk exceeds.
func TestASoleReplicaKeepsItsLeadershipWhileItsDiskIsSlow(t *testing.T) {
	var disk *slowStorage
	c := newTestNodeWith(t, 1, func(cfg *Config) {
		disk = &slowStorage{Storage: cfg.Group.Storage}
		cfg.Group.Storage = disk
	})
	p := c.partitions[0]
	l, err := p.leader()
	require.NoError(t, err)
	late, cancel := context.WithCancel(t.Context())
	cancel()
	disk.slow.Lock()
	err = attemptSource{l}.Confirm(late)
	disk.slow.Unlock()
	require.NoError(t, err)
	require.NoError(t, l.ctx.Err())
	now, err := p.leader()
	require.NoError(t, err)
	require.Same(t, l, now)
}
