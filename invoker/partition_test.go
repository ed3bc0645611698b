package invoker

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// shard is a partition in memory: the real machine on tables in maps. One goroutine applies,
// carries out effects and resolves proposals, in that order, as a partition does.
type shard struct {
	t       testing.TB
	session *Session

	mu      sync.Mutex // covers the fields below
	more    sync.Cond
	queue   []proposal
	held    bool // proposals wait
	stopped bool
	machine *machine.Machine
	tables  *machinetest.State
	finish  map[ids.Invocation]chan journal.Result
	timers  []alarm
	ahead   time.Duration // of the log's clock
	seen    []*machine.Progress
	records int // that were read
	work    sync.WaitGroup
}

// alarm is a timer that was set, and what happens when it fires.
type alarm struct {
	*time.Timer
	at   time.Time
	fire func()
}

type proposal struct {
	c    machine.Command
	done func(machine.Outcome, error)
}

func newShard(t testing.TB) *shard {
	s := &shard{
		t: t, machine: machine.New(machine.Shards{Self: 0, Count: 1}), tables: machinetest.New(),
		finish: map[ids.Invocation]chan journal.Result{},
	}
	s.more.L = &s.mu
	s.work.Go(s.apply)
	s.submit(&machine.Lead{Epoch: 1, Node: "n"}, func(machine.Outcome, error) {})
	return s
}

func (s *shard) stop() {
	s.mu.Lock()
	s.stopped, s.held = true, false
	for _, timer := range s.timers {
		timer.Stop()
	}
	s.more.Broadcast()
	s.mu.Unlock()
	s.work.Wait()
}

func (s *shard) apply() {
	for {
		s.mu.Lock()
		for (len(s.queue) == 0 || s.held) && !s.stopped {
			s.more.Wait()
		}
		if s.stopped {
			s.mu.Unlock()
			return
		}
		p := s.queue[0]
		s.queue = s.queue[1:]
		h := machine.Header{Level: feature.Newest, Epoch: 1, Time: time.Now().Add(s.ahead).UnixMilli()}
		outcome, effects, err := s.machine.Apply(s.tables, h, p.c, nil)
		s.mu.Unlock()
		if err != nil {
			s.t.Errorf("apply %T: %v", p.c, err)
		}
		for _, e := range effects {
			s.carryOut(e)
		}
		p.done(outcome, err)
	}
}

func (s *shard) carryOut(e machine.Effect) {
	switch e := e.(type) {
	case *machine.Run:
		s.session.Run(e)
	case *machine.Notify:
		s.session.Notify(e)
	case *machine.Abort:
		s.session.Abort(e)
	case *machine.Yield:
		s.session.Yield(e)
	case *machine.Hasten:
		s.session.Hasten(e)
	case *machine.Finish:
		s.ending(e.ID) <- e.Result
	case *machine.SetTimer:
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.Timer.Kind == machine.TimerSleep || e.Timer.Kind == machine.TimerStart {
			fire := func() {
				s.submit(&machine.FireTimers{Timers: []machine.Timer{e.Timer}}, func(machine.Outcome, error) {})
			}
			at := time.UnixMilli(e.Timer.At)
			s.timers = append(s.timers, alarm{time.AfterFunc(time.Until(at), fire), at, fire})
		}
	}
}

// fire advances the time of the log to the i-th timer that is set, which fires.
func (s *shard) fire(i int) {
	s.t.Helper()
	var a alarm
	require.Eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if i < len(s.timers) {
			a = s.timers[i]
			s.ahead = max(s.ahead, time.Until(a.at)+time.Second)
		}
		return a.Timer != nil
	}, time.Minute, time.Millisecond)
	if a.Stop() {
		a.fire()
	}
}

func (s *shard) ending(id ids.Invocation) chan journal.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finish[id] == nil {
		s.finish[id] = make(chan journal.Result, 4)
	}
	return s.finish[id]
}

func (s *shard) submit(c machine.Command, done func(machine.Outcome, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, proposal{c, done})
	s.more.Signal()
}

// hold keeps proposals from being applied until it is called with false.
func (s *shard) hold(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	s.more.Signal()
}

func (s *shard) Confirm(context.Context) error { return nil }

func (s *shard) Propose(p *machine.Progress, done func(machine.Outcome, error)) {
	s.mu.Lock()
	s.seen = append(s.seen, p)
	s.mu.Unlock()
	s.submit(p, done)
}

func (s *shard) Load(id ids.Invocation, attempt uint64, most int, stateLimit func(*machine.Invocation) (int, error)) (*attempts.Replay, error) {
	inv, err := s.readRecord(id, attempt)
	if err != nil {
		return nil, err
	}
	limit, err := stateLimit(inv)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &attempts.Replay{Invocation: inv, ReadAt: time.Now().UnixMilli()}
	for i := range inv.Length {
		e, err := s.tables.Entry(id, i)
		if err != nil {
			return nil, err
		}
		r.Entries = append(r.Entries, e)
	}
	if size := r.Size(); size > most {
		return nil, &attempts.TooLargeError{Size: size}
	}
	r.State, r.Partial = s.state(inv.Target.Object(), limit)
	return r, nil
}

func (s *shard) readRecord(id ids.Invocation, attempt uint64) (*machine.Invocation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inv, err := s.tables.Invocation(id)
	if err != nil {
		return nil, err
	}
	if inv == nil || inv.Status != machine.Invoked || inv.Attempt != attempt {
		return nil, attempts.ErrGone
	}
	s.records++
	record := *inv
	return &record, nil
}

func (s *shard) State(o machine.Object, limit int) ([]machine.StateEntry, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, partial := s.state(o, limit)
	return entries, partial, nil
}

func (s *shard) state(o machine.Object, limit int) (entries []machine.StateEntry, partial bool) {
	for e := range s.tables.Values(o) {
		if limit -= len(e.Key) + len(e.Value); limit < 0 {
			return entries, true
		}
		entries = append(entries, e)
	}
	return entries, false
}

func (s *shard) ValueSize(o machine.Object, key []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, _, err := s.tables.Value(o, key)
	return len(value), err
}

func (s *shard) StateSizes(o machine.Object, visit func(key []byte, size int)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e, err := range s.tables.Values(o) {
		if err != nil {
			return err
		}
		visit(e.Key, len(e.Value))
	}
	return nil
}

// put stores values of some lengths in the state of an object.
func (s *shard) put(o machine.Object, sizes map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, size := range sizes {
		s.tables.PutValue(o, []byte(key), make([]byte, size))
	}
}

// call creates an invocation; its result comes on the channel.
func (s *shard) call(target machine.Target, n byte, input string) (ids.Invocation, chan journal.Result) {
	return s.callAs(ids.NewInvocation(ids.HashKey(target.Key), [16]byte{15: n}), target, input)
}

func (s *shard) callAs(id ids.Invocation, target machine.Target, input string) (ids.Invocation, chan journal.Result) {
	ended := s.ending(id)
	s.submit(&machine.Invoke{
		ID: id, Target: target, Input: journal.NewInput(nil, []byte(input)),
		Retention: machine.Retention{Completion: 3_600_000, Journal: 3_600_000},
	}, func(machine.Outcome, error) {})
	return id, ended
}

func (s *shard) record(id ids.Invocation) machine.Invocation {
	s.mu.Lock()
	defer s.mu.Unlock()
	inv, err := s.tables.Invocation(id)
	require.NoError(s.t, err)
	if inv == nil {
		return machine.Invocation{}
	}
	return *inv
}

func (s *shard) journal(id ids.Invocation) (types []journal.Type) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inv, err := s.tables.Invocation(id)
	require.NoError(s.t, err)
	for i := range inv.Length {
		e, err := s.tables.Entry(id, i)
		require.NoError(s.t, err)
		types = append(types, e.Type)
	}
	return types
}

// proposed is the kinds of steps of each proposal so far.
func (s *shard) proposed() (kinds [][]machine.StepKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.seen {
		var steps []machine.StepKind
		for i := range p.Steps {
			steps = append(steps, p.Steps[i].Kind)
		}
		kinds = append(kinds, steps)
	}
	return kinds
}

func (s *shard) await(id ids.Invocation, status machine.Status) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.record(id).Status == status }, time.Minute, time.Millisecond)
}

func receive(t testing.TB, ended chan journal.Result) journal.Result {
	t.Helper()
	select {
	case r := <-ended:
		return r
	case <-time.After(time.Minute): // the Go SDK compiles its core first, which takes long with -race
		t.Fatal("the invocation did not end")
		return journal.Result{}
	}
}
