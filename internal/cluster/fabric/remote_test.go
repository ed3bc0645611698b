package fabric

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/partition"
	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/machine"
)

func sampleRecord() partition.Record {
	return partition.Record{
		Invocation: &machine.Invocation{ID: invocationID(1), Target: invocation(1).Target, Status: machine.Invoked, CreatedAt: 5, Length: 2},
		Attempts: &attempts.Status{
			InFlight: true, RetryCount: 3, Unreported: 2, LastStartAt: time.Unix(7, 8), NextRetryAt: time.Unix(9, 10),
			NoResponseSince: time.Unix(11, 12), AbortAt: time.Unix(13, 14), ActiveAt: time.Unix(17, 18), SuspendAt: time.Unix(19, 20), LastFailureAt: time.Unix(15, 16),
			LastFailure: &machine.AttemptFailure{Code: 500, ErrorCode: "RT0007", Message: "no", RelatedIndex: new(uint32(0))},
			Awaiting: &journal.Await{
				On:        &journal.Future{Completions: []uint32{1}, Nested: []journal.Future{{Names: []string{"n"}}}, Combinator: 2},
				Executing: true,
			},
			Deployment: "dp_1", Protocol: 5, Server: "sdk/1",
		},
	}
}

func TestRequestsAndOutcomesRoundTrip(t *testing.T) {
	p := newFake(true)
	r, _ := pair(t, p)
	ctx := t.Context()
	inv := invocation(1)
	failed := journal.Result{Failure: &journal.Failure{Code: 409, Message: "m", Metadata: []journal.Metadata{{Key: "a", Value: "b"}}}}
	outcome := machine.Outcome{Code: machine.Existing, Own: true, Status: machine.Completed, Result: &failed, ExpiresAt: 3, StartAt: 4, ID: invocationID(5)}
	ending := partition.Ending{Target: inv.Target, Result: failed, ExpiresAt: 9}
	empty := partition.Ending{Target: inv.Target}

	p.invoke = func(_ context.Context, got *machine.Invoke) (machine.Outcome, error) {
		require.Equal(t, inv, got)
		return outcome, nil
	}
	o, err := r.Invoke(ctx, inv)
	require.NoError(t, err)
	require.Equal(t, outcome, o)

	p.call = func(_ context.Context, got *machine.Invoke) (partition.Ending, machine.Outcome, error) {
		require.Equal(t, inv, got)
		return ending, machine.Outcome{Code: machine.Existing, Own: true}, nil
	}
	e, o, err := r.Call(ctx, inv)
	require.NoError(t, err)
	require.Equal(t, ending, e)
	require.Equal(t, machine.Outcome{Code: machine.Existing, Own: true}, o)

	p.await = func(_ context.Context, got ids.Invocation) (partition.Ending, error) {
		require.Equal(t, inv.ID, got)
		return empty, nil
	}
	e, err = r.Await(ctx, inv.ID)
	require.NoError(t, err)
	require.Equal(t, empty, e)

	signal := &machine.Signal{Target: inv.ID, ID: journal.NumberedSignal(journal.CancelSignal), Request: 3}
	p.operate = func(_ context.Context, got machine.Command) (machine.Outcome, error) {
		require.Equal(t, signal, got)
		return machine.Outcome{Code: machine.NotEnded, Status: machine.Paused}, nil
	}
	o, err = r.Operate(ctx, signal)
	require.NoError(t, err)
	require.Equal(t, machine.Outcome{Code: machine.NotEnded, Status: machine.Paused}, o)

	messages := &machine.Deliver{From: 2, FirstSeq: 5, Messages: []machine.Message{inv, &machine.Kill{Target: inv.ID}}}
	p.deliver = func(_ context.Context, got *machine.Deliver) error {
		require.Equal(t, messages, got)
		return nil
	}
	require.NoError(t, r.Deliver(ctx, messages))

	records := &machine.Ingest{Stream: machine.Stream{Subscription: "sub", Incarnation: 2, Topic: "t", TopicID: [16]byte{1}, Partition: 3}, Prev: machine.NoOffset, Records: []machine.IngestRecord{{Offset: 9, Invoke: *inv}}}
	p.ingest = func(_ context.Context, got *machine.Ingest) (machine.Outcome, error) {
		require.Equal(t, records, got)
		return machine.Outcome{Code: machine.Gap, Last: machine.NoOffset}, nil
	}
	_, err = r.Ingest(ctx, records)
	var levelErr *feature.Error
	require.ErrorAs(t, err, &levelErr, "older nodes cannot read it")
	r.c.level = func() feature.Level { return feature.Level4 }
	o, err = r.Ingest(ctx, records)
	require.NoError(t, err)
	require.Equal(t, machine.Outcome{Code: machine.Gap, Last: machine.NoOffset}, o)
}

// Baggage is left out of requests while older nodes, which cannot read it, are part of the cluster.
func TestBaggageIsSentOnceTheLevelAllowsIt(t *testing.T) {
	p := newFake(true)
	r, _ := pair(t, p)
	inv := invocation(1)
	for level, want := range map[feature.Level]string{feature.Level3: "", feature.Level4: "user=1"} {
		r.c.level = func() feature.Level { return level }
		inv.Trace.Baggage = "user=1"
		p.invoke = func(_ context.Context, got *machine.Invoke) (machine.Outcome, error) {
			require.Equal(t, want, got.Trace.Baggage)
			return machine.Outcome{}, nil
		}
		_, err := r.Invoke(t.Context(), inv)
		require.NoError(t, err)
	}
}

func TestRecordsAndStateRoundTrip(t *testing.T) {
	p := newFake(true)
	r, _ := pair(t, p)
	ctx := t.Context()
	sample := sampleRecord()

	p.find = func(context.Context, ids.Invocation) (*machine.Invocation, error) { return sample.Invocation, nil }
	inv, err := r.Find(ctx, sample.ID)
	require.NoError(t, err)
	require.Equal(t, sample.Invocation, inv)

	entries := []journal.Entry{{Type: journal.Input, AppendedAt: 4, Payload: []byte("x")}, {Type: journal.Sleep, Payload: []byte("y")}}
	p.inspect = func(_ context.Context, _ ids.Invocation, withJournal bool) (partition.Record, []journal.Entry, error) {
		require.True(t, withJournal)
		return sample, entries, nil
	}
	rec, got, err := r.Inspect(ctx, sample.ID, true)
	require.NoError(t, err)
	require.Equal(t, sample, rec)
	require.Equal(t, entries, got)

	object := machine.Object{Scope: "x", Service: "S", Key: "k"}
	state := []machine.StateEntry{{Key: []byte("a"), Value: []byte("1")}, {Key: []byte("b")}}
	p.state = func(_ context.Context, o machine.Object, limit int) ([]machine.StateEntry, bool, error) {
		require.Equal(t, object, o)
		require.Equal(t, 100, limit)
		return state, true, nil
	}
	found, complete, err := r.State(ctx, object, 100)
	require.NoError(t, err)
	require.True(t, complete)
	require.Equal(t, state, found)
}

func TestRecordsArePaged(t *testing.T) {
	p := newFake(true)
	r, _ := pair(t, p)
	const count = 3*pageRecords + 5
	broken := errors.New("disk on fire")
	p.records = func(_ context.Context, completed bool) iter.Seq2[partition.Record, error] {
		return func(yield func(partition.Record, error) bool) {
			for i := range count {
				rec := sampleRecord()
				rec.CreatedAt = int64(i)
				if !yield(rec, nil) {
					return
				}
			}
			if completed {
				yield(partition.Record{}, broken)
			}
		}
	}
	next := 0
	for rec, err := range r.Records(t.Context(), false) {
		require.NoError(t, err)
		require.EqualValues(t, next, rec.CreatedAt)
		require.Equal(t, sampleRecord().Attempts, rec.Attempts)
		next++
	}
	require.Equal(t, count, next)

	for range r.Records(t.Context(), false) {
		break // must end the stream; goleak detects a leak
	}
	var last error
	for _, err := range r.Records(t.Context(), true) {
		last = err
	}
	require.ErrorContains(t, last, "disk on fire")
	p.set(false, leaderOf("n2", "10.0.0.2:1"))
	for _, err := range r.Records(t.Context(), true) {
		rejection, ok := errors.AsType[*NotLeaderError](err)
		require.True(t, ok)
		require.Equal(t, leaderOf("n2", "10.0.0.2:1"), rejection.Leader)
	}
}

func TestErrorsKeepTheirMeaning(t *testing.T) {
	p := newFake(true)
	r, n := pair(t, p)
	cases := []struct {
		name     string
		err      error
		is       error
		definite bool
	}{
		{"unknown", fmt.Errorf("deposed: %w", raftgroup.ErrUnknownOutcome), raftgroup.ErrUnknownOutcome, false},
		{"not leader", fmt.Errorf("x: %w", raftgroup.ErrNotLeader), raftgroup.ErrNotLeader, true},
		{"overloaded", raftgroup.ErrOverloaded, raftgroup.ErrOverloaded, true},
		{"stopped", raftgroup.ErrStopped, raftgroup.ErrStopped, true},
		{"not found", partition.ErrNotFound, partition.ErrNotFound, false},
		{"server context cancelled", context.Canceled, raftgroup.ErrUnknownOutcome, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p.invoke = func(context.Context, *machine.Invoke) (machine.Outcome, error) { return machine.Outcome{}, c.err }
			_, err := r.Invoke(t.Context(), invocation(1))
			require.ErrorIs(t, err, c.is)
			require.Equal(t, c.definite, raftgroup.Definite(err))
			require.NotErrorIs(t, err, context.Canceled, "the caller's context has not ended")
		})
	}
	p.invoke = func(context.Context, *machine.Invoke) (machine.Outcome, error) {
		return machine.Outcome{}, errors.New("odd")
	}
	_, err := r.Invoke(t.Context(), invocation(1))
	require.ErrorContains(t, err, "odd")
	require.False(t, raftgroup.Definite(err) || errors.Is(err, raftgroup.ErrUnknownOutcome))

	p.set(false, leaderOf("n2/1", "n2:5122"))
	_, err = r.Invoke(t.Context(), invocation(1))
	rejection, ok := errors.AsType[*NotLeaderError](err)
	require.True(t, ok)
	require.Equal(t, &NotLeaderError{Partition: 0, Node: n.address, Leader: leaderOf("n2/1", "n2:5122")}, rejection)
}

func TestCancellationReachesTheServer(t *testing.T) {
	p := newFake(true)
	r, _ := pair(t, p)
	started, ended := make(chan struct{}, 1), make(chan error, 1)
	wait := func(ctx context.Context) error {
		started <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return context.Cause(ctx)
	}
	p.call = func(ctx context.Context, _ *machine.Invoke) (e partition.Ending, o machine.Outcome, err error) {
		return e, o, wait(ctx)
	}
	p.await = func(ctx context.Context, _ ids.Invocation) (e partition.Ending, err error) { return e, wait(ctx) }
	p.invoke = func(ctx context.Context, _ *machine.Invoke) (o machine.Outcome, err error) { return o, wait(ctx) }
	cause := errors.New("caller cancelled")
	for name, request := range map[string]func(context.Context) error{
		"call":   func(ctx context.Context) error { _, _, err := r.Call(ctx, invocation(1)); return err },
		"await":  func(ctx context.Context) error { _, err := r.Await(ctx, invocationID(1)); return err },
		"invoke": func(ctx context.Context) error { _, err := r.Invoke(ctx, invocation(1)); return err },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			result := make(chan error, 1)
			go func() { result <- request(ctx) }()
			<-started
			cancel(cause)
			err := <-result
			require.ErrorIs(t, err, cause)
			require.Equal(t, name == "invoke", errors.Is(err, raftgroup.ErrUnknownOutcome), "as with a local replica")
			require.ErrorIs(t, <-ended, context.Canceled)
		})
	}
}

func TestBrokenConnection(t *testing.T) {
	p := newFake(true)
	started := make(chan struct{}, 3)
	hang := func(ctx context.Context) error { started <- struct{}{}; <-ctx.Done(); return ctx.Err() }
	p.call = func(ctx context.Context, _ *machine.Invoke) (e partition.Ending, o machine.Outcome, err error) {
		return e, o, hang(ctx)
	}
	p.invoke = func(ctx context.Context, _ *machine.Invoke) (o machine.Outcome, err error) { return o, hang(ctx) }
	p.await = func(ctx context.Context, _ ids.Invocation) (e partition.Ending, err error) { return e, hang(ctx) }
	r, n := pair(t, p)
	called, invoked, awaited := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() { _, _, err := r.Call(t.Context(), invocation(1)); called <- err }()
	go func() { _, err := r.Invoke(t.Context(), invocation(2)); invoked <- err }()
	go func() { _, err := r.Await(t.Context(), invocationID(3)); awaited <- err }()
	for range 3 {
		<-started
	}
	n.rpc.Stop()
	for _, c := range []chan error{called, invoked} {
		err := <-c
		require.ErrorIs(t, err, raftgroup.ErrUnknownOutcome)
		require.False(t, raftgroup.Definite(err))
	}
	err := <-awaited
	require.ErrorIs(t, err, ErrUnreachable)
	require.True(t, raftgroup.Definite(err))

	_, err = r.Invoke(t.Context(), invocation(4))
	require.ErrorIs(t, err, ErrUnreachable, "connection refused, so nothing was sent")
	require.True(t, raftgroup.Definite(err))
	for _, err := range r.Records(t.Context(), true) {
		require.ErrorIs(t, err, ErrUnreachable)
	}
}

func TestReconnectAfterRestart(t *testing.T) {
	p := newFake(true)
	p.invoke = func(context.Context, *machine.Invoke) (o machine.Outcome, err error) { return o, nil }
	r, n := pair(t, p)
	_, err := r.Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
	n.stop()
	require.Eventually(t, func() bool {
		_, err := r.Invoke(t.Context(), invocation(1))
		return errors.Is(err, ErrUnreachable)
	}, time.Minute, time.Millisecond)
	lis, err := net.Listen("tcp", n.address)
	require.NoError(t, err)
	serveNode(t, lis, "c", localReplica(p))
	r.c.Seen(n.address)
	require.Eventually(t, func() bool {
		_, err := r.Invoke(t.Context(), invocation(1))
		return err == nil
	}, time.Minute, 5*time.Millisecond)
}

func TestOtherClustersAreRejected(t *testing.T) {
	p := newFake(true)
	p.invoke = func(context.Context, *machine.Invoke) (o machine.Outcome, err error) { return o, nil }
	n := startNode(t, "ours", localReplica(p))
	for _, cluster := range []string{"theirs", ""} {
		r := newClient(t, cluster).Remote(n.address, 0)
		_, err := r.Invoke(t.Context(), invocation(1))
		require.ErrorIs(t, err, ErrUnreachable)
		require.True(t, raftgroup.Definite(err))
		for _, err := range r.Records(t.Context(), true) {
			require.ErrorIs(t, err, ErrUnreachable)
		}
	}
	require.Zero(t, p.acceptedRequests())
	_, err := newClient(t, "ours").Remote(n.address, 0).Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
}

func TestSmallMessagesOvertakeLargeOnes(t *testing.T) {
	p := newFake(true)
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	p.await = func(context.Context, ids.Invocation) (partition.Ending, error) {
		return partition.Ending{Result: journal.Result{Value: large}}, nil
	}
	p.invoke = func(_ context.Context, inv *machine.Invoke) (machine.Outcome, error) {
		return machine.Outcome{ExpiresAt: int64(len(inv.Input))}, nil
	}
	r, _ := pair(t, p)
	var g sync.WaitGroup
	for range 3 {
		g.Go(func() {
			e, err := r.Await(t.Context(), invocationID(1))
			if err != nil || !bytes.Equal(large, e.Result.Value) {
				t.Errorf("result of %d bytes: %v", len(e.Result.Value), err)
			}
		})
		g.Go(func() {
			inv := invocation(1)
			inv.Input = large
			o, err := r.Invoke(t.Context(), inv)
			if err != nil || o.ExpiresAt != int64(len(large)) {
				t.Errorf("input of %d bytes: %v", o.ExpiresAt, err)
			}
		})
	}
	for range 100 {
		o, err := r.Invoke(t.Context(), invocation(2))
		require.NoError(t, err)
		require.EqualValues(t, 5, o.ExpiresAt)
	}
	g.Wait()
}

func TestThousandsOfRequestsShareOneConnection(t *testing.T) {
	const waiters = 5000
	p := newFake(true)
	release := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Add(waiters)
	p.await = func(ctx context.Context, id ids.Invocation) (partition.Ending, error) {
		waiting.Done()
		select {
		case <-release:
			return partition.Ending{Result: journal.Result{Value: id[:]}}, nil
		case <-ctx.Done():
			return partition.Ending{}, ctx.Err()
		}
	}
	r, _ := pair(t, p)
	var g sync.WaitGroup
	for i := range waiters {
		g.Go(func() {
			id := ids.NewInvocation(uint64(i), [16]byte{1})
			e, err := r.Await(t.Context(), id)
			if err != nil || !bytes.Equal(id[:], e.Result.Value) {
				t.Errorf("waiter %d: %v", i, err)
			}
		})
	}
	waiting.Wait()
	r.c.mu.RLock()
	require.Len(t, r.c.conns, 1)
	r.c.mu.RUnlock()
	close(release)
	g.Wait()
}

func TestRequestsAreCountedByMethod(t *testing.T) {
	p := newFake(true)
	p.invoke = func(context.Context, *machine.Invoke) (machine.Outcome, error) { return machine.Outcome{}, nil }
	p.await = func(context.Context, ids.Invocation) (partition.Ending, error) {
		return partition.Ending{}, partition.ErrNotFound
	}
	p.records = func(context.Context, bool) iter.Seq2[partition.Record, error] {
		return func(func(partition.Record, error) bool) {}
	}
	r, _ := pair(t, p)
	for range 2 {
		_, err := r.Invoke(t.Context(), invocation(1))
		require.NoError(t, err)
	}
	_, err := r.Await(t.Context(), invocationID(1)) // failed requests are counted, too
	require.ErrorIs(t, err, partition.ErrNotFound)
	for _, err := range r.Records(t.Context(), true) {
		require.NoError(t, err)
	}
	require.Equal(t, map[string]uint64{
		"invoke": 2, "list": 0, "await": 1, "records": 1,
		"call": 0, "operate": 0, "deliver": 0, "ingest": 0, "find": 0, "inspect": 0, "state": 0, "scan": 0,
	}, r.c.Requests())
}

func leaderOf(id, address string) raftgroup.Leader {
	return raftgroup.Leader{ID: raft.ServerID(id), Address: raft.ServerAddress(address)}
}

// TestResponsesWithoutContentAreErrors requires that a faulty node does not end this one.
func TestResponsesWithoutContentAreErrors(t *testing.T) {
	_, err := recordFromWire(nil)
	require.ErrorContains(t, err, "record is missing")
	_, err = endingFromWire(nil)
	require.Error(t, err)
	_, err = listedFromWire(nil)
	require.Error(t, err)
}

// A node that creates invocations on another one learns how far its leader is, which the leader
// gets back with later requests.
func TestTheMomentOfTheLeaderIsLearned(t *testing.T) {
	p := newFake(true)
	r, _ := pair(t, p)
	r.c.level = func() feature.Level { return feature.Level4 }
	h := new(Handle)
	r.withMoment(&h.moment)
	h.d = &Directory{cfg: DirectoryConfig{Local: func(uint32) Local { return nil }}}
	require.Zero(t, h.Moment())
	var since []machine.Moment
	p.invoke = func(_ context.Context, got *machine.Invoke) (machine.Outcome, error) {
		since = append(since, got.Since)
		return machine.Outcome{}, nil
	}
	p.call = func(_ context.Context, got *machine.Invoke) (partition.Ending, machine.Outcome, error) {
		since = append(since, got.Since)
		return partition.Ending{}, machine.Outcome{}, nil
	}
	p.moment = machine.Moment{Leadership: 1 << 63, Number: 3}
	inv := invocation(1)
	_, err := r.Invoke(t.Context(), inv)
	require.NoError(t, err)
	inv.Since = h.Moment()
	p.moment.Number = 4
	_, _, err = r.Call(t.Context(), inv)
	require.NoError(t, err)
	require.Equal(t, []machine.Moment{{}, {Leadership: 1 << 63, Number: 3}}, since)
	require.Equal(t, p.moment, h.Moment())
	h.d.cfg.Local = func(uint32) Local { return &fake{leading: true, moment: machine.Moment{Leadership: 7}} }
	require.EqualValues(t, 7, h.Moment().Leadership, "of the replica on this node")
	h.d.cfg.Local = func(uint32) Local { return newFake(false) }
	require.Equal(t, p.moment, h.Moment())
}
