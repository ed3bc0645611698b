package fabric

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"platform/internal/ids"
	"platform/internal/nodelink"
	"platform/internal/raftgroup"
	"platform/internal/raftgroup/logstore"
	"platform/internal/target"
	"platform/invoker"
	"platform/metadata"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/store"
)

// member is a node with a real replica of partition 0.
type member struct {
	address string
	replica *partition.Partition
	handle  *Handle
	stop    func(t *testing.T)
}

type noServices struct{}

func (noServices) Schemas() *metadata.Schemas { return &metadata.Schemas{} }

// startMembers starts a Raft group of three nodes, each with its own port.
func startMembers(t *testing.T) []*member {
	var voters []raft.Server
	listeners := make([]net.Listener, 3)
	for i := range listeners {
		var err error
		listeners[i], err = net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		address := listeners[i].Addr().String()
		voters = append(voters, raft.Server{ID: raft.ServerID(address), Address: raft.ServerAddress(address)})
	}
	members := make([]*member, len(listeners))
	for i, lis := range listeners {
		members[i] = startMember(t, lis, voters)
	}
	return members
}

func startMember(t *testing.T, lis net.Listener, voters []raft.Server) *member {
	dir, address := t.TempDir(), lis.Addr().String()
	m := &member{address: address}
	logs, err := logstore.Open(filepath.Join(dir, "log"), logstore.Options{Logger: quiet})
	require.NoError(t, err)
	tables, err := store.Open(filepath.Join(dir, "state"), store.Options{Logger: quiet})
	require.NoError(t, err)
	transport, err := raftgroup.NewTransport(raftgroup.TransportConfig{
		ClusterID: "c", NodeID: address, Address: raft.ServerAddress(address), Logger: quiet,
	})
	require.NoError(t, err)
	iv := invoker.New(invoker.DefaultConfig(), noServices{}, quiet)
	client := NewClient(ClientConfig{Self: identity("c", address), Log: quiet})
	local := func(uint32) Local { return m.replica }
	server := NewServer(ServerConfig{Self: identity("c", address), Local: local, Seen: client.Seen, Log: quiet})
	rpc := grpc.NewServer(nodelink.ServerOptions()...)
	transport.Register(rpc)
	server.Register(rpc)

	own, err := tables.Partition(0)
	require.NoError(t, err)
	storage, err := logs.Storage(partition.GroupID(0))
	require.NoError(t, err)
	m.replica, err = partition.Open(partition.Config{
		ID: 0, Count: 1, Node: address, Tables: own, Flush: tables.Flush, Invoker: iv,
		Deliver: func(context.Context, uint32, *machine.Deliver) error { return nil },
		Group:   raftgroup.Config{Storage: storage, Transport: transport, Profile: raftgroup.Test(), LocalID: raft.ServerID(address), Voters: voters},
		Log:     quiet,
	})
	require.NoError(t, err)
	m.handle = NewDirectory(1, DirectoryConfig{
		Local: local, Remote: func(a string, id uint32) Replica { return client.Remote(a, id) }, Self: address,
	}).Partition(0)
	var serving sync.WaitGroup
	serving.Go(func() { _ = rpc.Serve(lis) })
	var once sync.Once
	m.stop = func(t *testing.T) {
		once.Do(func() {
			require.NoError(t, m.replica.Close(context.Background()))
			iv.Close()
			require.NoError(t, client.Close())
			server.Close()
			rpc.Stop()
			serving.Wait()
			require.NoError(t, transport.Close())
			require.NoError(t, tables.Close())
			require.NoError(t, logs.Close())
		})
	}
	t.Cleanup(func() { m.stop(t) })
	return m
}

// update returns an invocation that the state machine completes without an attempt.
func update(n int) *machine.Invoke {
	return &machine.Invoke{
		ID:      ids.NewInvocation(uint64(n), [16]byte{1, 15: byte(n)}),
		Target:  machine.Target{Service: "S", Key: fmt.Sprint("k", n), Type: target.StateUpdate},
		Input:   journal.NewStateReplacement(&journal.StateReplacement{State: []journal.StatePair{{Key: []byte("a"), Value: []byte("1")}}}),
		Request: rand.Uint64() | 1,
	}
}

// callUntilKnown retries a call with the same ID until its outcome is known, as callers do.
func callUntilKnown(ctx context.Context, h *Handle, inv *machine.Invoke) error {
	for {
		_, _, err := h.Call(ctx, inv)
		if err == nil || !errors.Is(err, raftgroup.ErrUnknownOutcome) && !raftgroup.Definite(err) {
			return err
		}
		if ctx.Err() != nil {
			return err
		}
	}
}

func TestEveryNodeReachesTheLeader(t *testing.T) {
	members := startMembers(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	n := 0
	check := func(m *member) {
		n++
		inv := update(n)
		require.NoError(t, callUntilKnown(ctx, m.handle, inv))
		found, err := m.handle.Find(ctx, inv.ID)
		require.NoError(t, err)
		require.Equal(t, machine.Completed, found.Status)
		state, _, err := m.handle.State(ctx, inv.Target.Object(), 1000)
		require.NoError(t, err)
		require.Equal(t, []machine.StateEntry{{Key: []byte("a"), Value: []byte("1")}}, state)
		e, err := m.handle.Await(ctx, inv.ID)
		require.NoError(t, err)
		require.Nil(t, e.Result.Failure)
	}
	for _, m := range members {
		check(m)
	}
	var leader *member
	var others []*member
	for _, m := range members {
		if m.replica.Leading() {
			leader = m
			continue
		}
		others = append(others, m)
	}
	require.NotNil(t, leader)

	// Callers on the other nodes continue while the leader stops.
	var g sync.WaitGroup
	started := make(chan struct{}, 1000)
	for i, m := range others {
		g.Go(func() {
			for j := range 50 {
				if err := callUntilKnown(ctx, m.handle, update(1000+100*i+j)); err != nil {
					t.Error(err)
				}
				started <- struct{}{}
			}
		})
	}
	<-started
	leader.stop(t)
	g.Wait()
	for _, m := range others {
		check(m)
	}
	records := 0
	for _, err := range others[0].handle.Records(ctx, true) {
		require.NoError(t, err)
		records++
	}
	require.Equal(t, n+100, records, "each invocation exists once")
}
