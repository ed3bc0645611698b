package invoker

import (
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"platform/internal/errcode"
	"platform/internal/ids"
	"platform/internal/limits"
	"platform/internal/raftgroup"
	"platform/internal/target"
	"platform/invoker/protocol"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/service"
)

// setState is a SetState command for the key "k" with a value of that many bytes.
func setState(size int) string {
	value := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), make([]byte, size))
	payload := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte("k"))
	payload = protowire.AppendBytes(protowire.AppendTag(payload, 3, protowire.BytesType), value)
	return frame(journal.SetState, hex.EncodeToString(payload))
}

// What a handler sends in one go may be of any size; one log command is not.
func TestLargeStepsAreProposedAsSeveralCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := policy(1, metadata.Pause)
		cfg.MessageSizeLimit = 8 << 20
		o := newOffline(t, cfg, func(w *wire) {
			w.ok()
			w.send(t, strings.Repeat(setState(300<<10), 20)+setState(5<<20)+outputHi+end)
		})
		defer o.close()
		_, ended := o.shard.call(counter("k"), 1, "")
		synctest.Wait()
		require.Nil(t, (<-ended).Failure)
		steps := 0
		for _, p := range o.shard.seen {
			if size := stepsSize(p.Steps); size > limits.ProgressBatch {
				require.Less(t, size, 5<<20+1<<10)
			}
			steps += len(p.Steps)
		}
		require.Equal(t, 23, steps)
		require.Len(t, o.shard.seen, 8, "three values a command; then the large one with output and end")
	})
}

// Commands without content count, too, so that an endpoint that sends them faster than they are stored
// has to wait.
func TestEmptyCommandsAreBoundedInTransit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sends, commands = 20, 10_000
		var o *offline
		sent := 0
		o = newOffline(t, policy(1, metadata.Pause), func(w *wire) {
			w.ok()
			o.shard.hold(true)
			for sent < sends {
				w.send(t, strings.Repeat(frame(journal.ClearAllState, ""), commands))
				sent++
			}
			w.send(t, outputHi+end)
		})
		defer o.close()
		_, ended := o.shard.call(counter("k"), 1, "")
		synctest.Wait()
		require.Less(t, sent, 2*openVolume/(64*commands))
		o.shard.hold(false)
		require.Nil(t, (<-ended).Failure)
		require.Equal(t, sends, sent)
	})
}

func TestBatchesKeepOrderAndSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var steps []machine.Step
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			size := rapid.SampledFrom([]int{0, 10, 900, 2000, 64 << 10, 600 << 10, 3 << 20}).Draw(t, "size")
			steps = append(steps, machine.Step{Completion: uint32(len(steps)), Payload: make([]byte, size)})
		}
		next := uint32(0)
		for _, batch := range batches(steps) {
			require.NotEmpty(t, batch)
			size := 0
			for i := range batch {
				require.Equal(t, next, batch[i].Completion)
				next++
				size += len(batch[i].Payload)
			}
			require.LessOrEqual(t, size, 3<<20+limits.ProgressBatch)
		}
		require.Equal(t, len(steps), int(next))
	})
}

// An attempt whose progress can never be stored fails with a code and releases its slot.
func TestProgressThatCannotBeStoredFailsTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := policy(2, metadata.Pause)
		cfg.ConcurrentInvocations = 1
		o := newOffline(t, cfg, func(w *wire) {
			w.ok()
			w.send(t, frame(journal.Sleep, "08015801"))
		})
		defer o.close()
		o.session.part = deposed{o.shard, machine.Outcome{}, errcode.New(errcode.RT0003, "cannot be stored: %w", raftgroup.ErrTooLarge)}
		id, _ := o.shard.call(greeter, 1, "")
		synctest.Wait()
		st, _ := o.iv.Status(id)
		require.Equal(t, "RT0003", st.LastFailure.ErrorCode)
		require.False(t, st.InFlight)
	})
}

// A value may be as large as a message, its key may not.
func TestKeysOfStateAreBounded(t *testing.T) {
	inv := &machine.Invocation{Target: machine.Target{Service: "S", Key: "k", Handler: "h", Type: target.ObjectExclusive}}
	set := func(key, value int) error {
		payload, err := (&service.SetStateCommandMessage{Key: make([]byte, key), Value: &service.Value{Content: make([]byte, value)}}).MarshalVT()
		require.NoError(t, err)
		_, _, err = new(Invoker).step(inv, 0, &protocol.Message{Type: journal.SetState, Payload: payload}, new(completions))
		return err
	}
	require.NoError(t, set(limits.Key, 1))
	require.NoError(t, set(1, 2*limits.Names))
	err := set(limits.Key+1, 1)
	code, _ := errcode.Of(err)
	require.Equal(t, errcode.RT0003, code, err)
	require.ErrorContains(t, err, "the key has 65537 bytes, at most 65536")
}

// Keys of promises and names of signals become keys of rows.
func TestNamesOfPromisesAndSignalsAreBounded(t *testing.T) {
	inv := &machine.Invocation{Target: machine.Target{Service: "S", Key: "k", Handler: "h", Type: target.WorkflowRun}}
	void := &service.SendSignalCommandMessage_Void{Void: &service.Void{}}
	check := func(kind journal.Type, m interface{ MarshalVT() ([]byte, error) }) error {
		payload, err := m.MarshalVT()
		require.NoError(t, err)
		_, _, err = new(Invoker).step(inv, 0, &protocol.Message{Type: kind, Payload: payload}, new(completions))
		return err
	}
	for _, size := range []int{limits.Key, limits.Key + 1} {
		name := strings.Repeat("n", size)
		value := &service.CompletePromiseCommandMessage_CompletionValue{CompletionValue: &service.Value{}}
		for _, err := range []error{
			check(journal.GetPromise, &service.GetPromiseCommandMessage{Key: name, ResultCompletionId: 1}),
			check(journal.PeekPromise, &service.PeekPromiseCommandMessage{Key: name, ResultCompletionId: 1}),
			check(journal.CompletePromise, &service.CompletePromiseCommandMessage{Key: name, ResultCompletionId: 1, Completion: value}),
			check(journal.SendSignal, &service.SendSignalCommandMessage{
				TargetInvocationId: ids.NewInvocation(1, [16]byte{1}).String(), SignalId: &service.SendSignalCommandMessage_Name{Name: name}, Result: void,
			}),
		} {
			if size == limits.Key {
				require.NoError(t, err)
				continue
			}
			code, _ := errcode.Of(err)
			require.Equal(t, errcode.RT0003, code, err)
			require.ErrorContains(t, err, "has 65537 bytes, at most 65536")
		}
	}
}

func TestNamesOfACallAreBounded(t *testing.T) {
	iv := New(policy(1, metadata.Pause), &bench{schemas: testSchemas("http://nowhere/")}, nil)
	defer iv.Close()
	call := func(key, idempotencyKey int) error {
		text := strings.Repeat("k", idempotencyKey)
		_, err := iv.callee(ids.Invocation{}, 0, &journal.Request{
			Service: counter("").Service, Handler: counter("").Handler, Key: strings.Repeat("k", key), IdempotencyKey: &text,
		})
		return err
	}
	require.NoError(t, call(limits.Key, limits.Names-limits.Key-100))
	for _, err := range []error{call(limits.Key+1, 1), call(limits.Key, limits.Names-limits.Key)} {
		code, _ := errcode.Of(err)
		require.Equal(t, errcode.RT0003, code, err)
	}
}

// refusesReads is a partition that cannot store reads of all keys of a state.
type refusesReads struct{ *shard }

func (r refusesReads) Propose(p *machine.Progress, done func(machine.Outcome, error)) {
	for i := range p.Steps {
		if p.Steps[i].Type == journal.GetLazyStateKeys {
			done(machine.Outcome{}, errcode.New(errcode.RT0003, "cannot list the keys: %w", raftgroup.ErrTooLarge))
			return
		}
	}
	r.shard.Propose(p, done)
}

// What the endpoint has sent after a command that cannot be stored is not stored either: the journal
// would lack that command, and every further attempt would find another journal than its handler's.
func TestNothingIsStoredAfterACommandThatCannotBe(t *testing.T) {
	keys, run := frame(journal.GetLazyStateKeys, "5801"), frame(journal.Run, "5802")
	sleep := frame(journal.Sleep, "08015803")
	large, err := (&service.SetStateCommandMessage{Key: []byte("k"), Value: &service.Value{Content: make([]byte, 2*limits.ProgressBatch)}}).MarshalVT()
	require.NoError(t, err)
	for name, script := range map[string]func(*testing.T, *wire){
		"in the same data": func(t *testing.T, w *wire) { w.send(t, keys+frame(journal.SetState, hexOf(string(large)))+sleep) },
		"while it lingers": func(t *testing.T, w *wire) { w.send(t, keys); w.send(t, run) },
		"in the next data": func(t *testing.T, w *wire) { w.send(t, keys); w.send(t, sleep) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffline(t, policy(1, metadata.Pause), func(w *wire) {
					w.ok()
					script(t, w)
				})
				defer o.close()
				o.session.part = refusesReads{o.shard}
				id, _ := o.shard.call(counter("k"), 1, "")
				o.shard.await(id, machine.Paused)
				require.Equal(t, []journal.Type{journal.Input}, o.shard.journal(id))
				require.Equal(t, "RT0003", o.shard.record(id).Failure.ErrorCode)
			})
		})
	}
}

// The first callees of an invocation that may be in any partition are in its own, as long as the
// node has room.
func TestFirstCalleesStayInThePartition(t *testing.T) {
	cfg := policy(1, metadata.Pause)
	busy := false
	cfg.Spread = func() bool { return busy }
	far := false
	cfg.Random = func() uint64 {
		if far {
			return rand.Uint64() / farCallees * farCallees
		}
		return rand.Uint64() | 1
	}
	iv := New(cfg, &bench{schemas: testSchemas("http://nowhere/")}, nil)
	defer iv.Close()
	caller := ids.NewInvocation(42, [16]byte{1})
	stays := func(number uint32, r *journal.Request, kind target.Type) bool {
		id := iv.calleeID(caller, number, r, kind)
		require.NotEqual(t, id, iv.calleeID(caller, number, r, kind), "of another call")
		return id.PartitionKey() == caller.PartitionKey()
	}
	call := &journal.Request{Service: "Greeter", Handler: "greet"}
	require.True(t, stays(1, call, target.Service))
	require.True(t, stays(nearCommands-1, call, target.Service))
	require.False(t, stays(nearCommands, call, target.Service))
	require.False(t, stays(1, &journal.Request{Service: "Counter", Handler: "add", Key: "k"}, target.ObjectExclusive))
	busy = true
	require.False(t, stays(1, call, target.Service))
	busy = false
	iv.slots.short.Store(true) // invocations wait
	require.False(t, stays(1, call, target.Service))
	iv.slots.short.Store(false)
	require.True(t, stays(1, call, target.Service))
	far = true
	require.False(t, stays(1, call, target.Service), "a large tree of calls spreads")
}
