package invoker

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/invoker/endpoint"
	"platform/invoker/protocol"
	"platform/metadata"
	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/machine"
)

// TestEveryNotificationReachesTheOpenStreamOrTheNextAttempt draws what a sequence of
// attempts does, how each of them ends, and at which points of their lives notifications
// of all kinds arrive. Every attempt must begin with the journal as it is then, and get
// the notifications that follow, each once and in journal order.
func TestEveryNotificationReachesTheOpenStreamOrTheNextAttempt(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plan := drawHistory(rt) // in full, since the bubble has goroutines of its own
		var wrong string
		synctest.Test(t, func(t *testing.T) { wrong = runHistory(t, plan) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// The kinds of notifications.
const (
	byCancel = iota
	byName
	byAwakeable
	bySleep // the completion of a sleep, if one was stored
	notificationKinds
)

// moment is a point in the life of an attempt, with what arrives there.
type moment struct {
	kinds  []int
	settle bool // let everything become idle before continuing
}

// The ends of attempts.
const (
	byError      = iota // a retryable error
	byBreak             // the connection breaks
	byStatus            // status 500, if the head was not sent yet
	bySuspending        // a suspension
	byAbort             // the abort timeout
	endings
)

// attemptPlan is the life of an attempt.
type attemptPlan struct {
	loading, loaded, replayed, answered, stored, half, ended, off moment

	head   bool // it sends the head of the response
	sleep  bool // it stores a sleep
	runs   bool // it stores a run and its result
	halves bool // it is silent until the inactivity timeout
	held   bool // the log is slow when it ends, and something is on its way there
	ending int
}

type history struct {
	busy     bool // the slots are taken at first
	recorded bool // those that wait for a slot do so with their records
	waiting  moment
	attempts []attemptPlan
}

func drawHistory(rt *rapid.T) *history {
	at := func(name string) moment {
		return moment{
			kinds:  rapid.SliceOfN(rapid.IntRange(0, notificationKinds-1), 0, 2).Draw(rt, name),
			settle: rapid.Bool().Draw(rt, name+" settles"),
		}
	}
	flag := func(name string) bool { return rapid.Bool().Draw(rt, name) }
	h := &history{busy: flag("busy"), recorded: flag("recorded"), waiting: at("waiting")}
	for range rapid.IntRange(1, 4).Draw(rt, "attempts") {
		h.attempts = append(h.attempts, attemptPlan{
			loading: at("loading"), loaded: at("loaded"), replayed: at("replayed"), answered: at("answered"),
			stored: at("stored"), half: at("half"), ended: at("ended"), off: at("off"),
			head: flag("head"), sleep: flag("sleep"), runs: flag("runs"), halves: flag("halves"), held: flag("held"),
			ending: rapid.IntRange(0, endings-1).Draw(rt, "ending"),
		})
	}
	return h
}

// tape is a stream that keeps what the server writes. The test plays the endpoint.
type tape struct {
	recv    endpoint.Receiver
	replay  chan struct{} // closed when Begin has returned
	journal int           // entries when the attempt began

	mu    sync.Mutex // covers the fields below
	bytes []byte
	half  bool
	over  bool
}

func (s *tape) Write(chunks ...[]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range chunks {
		s.bytes = append(s.bytes, c...)
	}
}

func (s *tape) mark(what *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*what = true
}

func (s *tape) CloseWrite() { s.mark(&s.half) }
func (s *tape) Finish()     { s.mark(&s.over) }
func (s *tape) Reset()      { s.mark(&s.over) }

func (s *tape) state() (half, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.half, s.over
}

// entries are those that were sent, and how many of them the start announced.
func (s *tape) entries(t *testing.T) (known int, list []journal.Entry) {
	s.mu.Lock()
	b := slices.Clone(s.bytes)
	s.mu.Unlock()
	for len(b) > 0 {
		typ, n := journal.Type(binary.BigEndian.Uint16(b)), binary.BigEndian.Uint32(b[4:])
		payload := b[8 : 8+n]
		b = b[8+n:]
		if typ == protocol.Start {
			known = announced(t, payload)
			continue
		}
		list = append(list, journal.Entry{Type: typ, Payload: payload})
	}
	return known, list
}

func announced(t *testing.T, start []byte) int {
	return knownEntries(t, fmt.Sprintf("%x", start))
}

// stage runs a history.
type stage struct {
	*offline
	t       *testing.T
	id      ids.Invocation
	tapes   chan *tape
	gates   *gatedLoads
	signals byte
	sleeps  int
	ids     byte // completion ids used
	wrong   string
}

// gatedLoads holds up reads of the journal before and after they happen.
type gatedLoads struct {
	*shard
	before, after chan chan struct{}
}

func (g *gatedLoads) pass(c chan chan struct{}) {
	ack := make(chan struct{})
	c <- ack
	<-ack
}

func (g *gatedLoads) Load(id ids.Invocation, attempt uint64, most int, limit func(*machine.Invocation) (int, error)) (*attempts.Replay, error) {
	g.pass(g.before)
	r, err := g.shard.Load(id, attempt, most, limit)
	g.pass(g.after)
	return r, err
}

func (g *gatedLoads) State(o machine.Object, limit int) ([]machine.StateEntry, bool, error) {
	g.pass(g.before)
	entries, partial, err := g.shard.State(o, limit)
	g.pass(g.after)
	return entries, partial, err
}

// runHistory returns the violation, or nothing.
func runHistory(t *testing.T, h *history) string {
	cfg := policy(0, metadata.Pause)
	if h.busy {
		cfg.ConcurrentInvocations = 1
	}
	s := &stage{offline: newOffline(t, cfg), t: t, tapes: make(chan *tape, 16), ids: 100}
	defer s.close()
	if !h.recorded {
		s.iv.slots.maxRecords = 0
	}
	s.gates = &gatedLoads{s.shard, make(chan chan struct{}), make(chan chan struct{})}
	s.session.part = s.gates
	s.iv.open = s.open
	free := func() {}
	if h.busy {
		free = s.occupy()
	}
	target := counter("k")
	s.id = ids.NewInvocation(ids.HashKey(target.Key), [16]byte{15: 1})
	s.shard.callAs(s.id, target, `"in"`)
	synctest.Wait()
	s.arrive(h.waiting)
	free()
	for i := range h.attempts {
		s.attempt(&h.attempts[i])
	}
	last := s.begin(&moment{}, &moment{})
	s.arrive(moment{kinds: []int{byCancel, byName, byAwakeable, bySleep}, settle: true})
	s.check(last, true)
	return s.wrong
}

func (s *stage) open(r endpoint.Receiver) Stream {
	w := &tape{recv: r, replay: make(chan struct{})}
	if r.(*attempt).t.id == s.id {
		w.journal = len(s.shard.journal(s.id))
		s.tapes <- w
		go func() {
			defer close(w.replay)
			r.Begin()
		}()
	}
	return w
}

// occupy takes the only slot, until the function it returns is called.
func (s *stage) occupy() (free func()) {
	w := waiter{s: s.session}
	got, _, _ := s.iv.slots.acquire(flowcontrol.QueueKey{Service: "Other"}, false, &w)
	require.True(s.t, got)
	return func() { s.iv.releaseSlot(w.share) }
}

// arrive delivers notifications.
func (s *stage) arrive(m moment) {
	for _, kind := range m.kinds {
		s.signals++
		signal := &machine.Signal{Target: s.id, Request: uint64(s.signals)}
		switch {
		case kind == bySleep && s.fireSleep():
			continue
		case kind == byCancel:
			signal.ID = journal.NumberedSignal(journal.CancelSignal)
		case kind == byName:
			signal.ID = journal.NamedSignal("go")
		default:
			signal.ID = journal.NumberedSignal(17 + uint32(s.signals))
		}
		s.shard.submit(signal, func(o machine.Outcome, err error) {
			if err != nil || o.Code != machine.OK {
				s.t.Errorf("signal: %+v, %v", o, err)
			}
		})
	}
	if m.settle {
		synctest.Wait()
	}
}

// fireSleep fires a sleep that is stored; false if there is none.
func (s *stage) fireSleep() bool {
	s.shard.mu.Lock()
	found := s.sleeps < len(s.shard.timers)
	s.shard.mu.Unlock()
	if found {
		s.shard.fire(s.sleeps)
		s.sleeps++
	}
	return found
}

// begin lets the next attempt read the journal, while notifications arrive.
func (s *stage) begin(loading, loaded *moment) *tape {
	w := <-s.tapes
	for range 2 {
		gate, m := s.gates.before, loading
		select {
		case ack := <-gate:
			s.arrive(*m)
			close(ack)
		case <-w.replay:
			continue
		}
		ack := <-s.gates.after
		s.arrive(*loaded)
		close(ack)
		loading, loaded = &moment{}, &moment{}
	}
	<-w.replay
	return w
}

// attempt plays an attempt that fails or suspends, up to the beginning of the next.
func (s *stage) attempt(p *attemptPlan) {
	w := s.begin(&p.loading, &p.loaded)
	a := w.recv.(*attempt)
	s.arrive(p.replayed)
	if p.head || p.ending == bySuspending {
		a.Response(endpoint.Head{Status: 200, Header: map[string][]string{"Content-Type": {protocol.V6.ContentType()}}})
		s.arrive(p.answered)
		s.store(a, p)
		s.arrive(p.stored)
	}
	if p.halves {
		time.Sleep(s.iv.cfg.Defaults.InactivityTimeout + time.Second)
		synctest.Wait()
		s.arrive(p.half)
	}
	synctest.Wait()
	half, _ := w.state()
	s.check(w, !half)
	s.end(a, p)
	s.arrive(p.ended)
	s.shard.hold(false)
	synctest.Wait()
	s.arrive(p.off)
	synctest.Wait()
	s.check(w, false)
	if s.shard.record(s.id).Status == machine.Suspended {
		s.shard.submit(&machine.Resume{Target: s.id}, func(machine.Outcome, error) {})
	}
}

func (s *stage) message(a *attempt, text string) { a.Data(unhex(s.t, text)) }

// store sends the commands of the attempt.
func (s *stage) store(a *attempt, p *attemptPlan) {
	if p.sleep {
		s.ids++
		s.message(a, frame(journal.Sleep, "08"+journalMillis(time.Now().Add(1000*time.Hour))+fmt.Sprintf("58%02x", s.ids)))
	}
	if p.runs {
		s.ids++
		s.message(a, frame(journal.Run, fmt.Sprintf("58%02x", s.ids)))
		s.message(a, frame(protocol.ProposeRunCompletion, fmt.Sprintf("08%02x720131", s.ids)))
	}
}

// end ends the attempt.
func (s *stage) end(a *attempt, p *attemptPlan) {
	s.shard.hold(p.held)
	if p.held && p.head {
		s.message(a, frame(journal.SetState, "0a0161"+"1a030a0135"))
	}
	switch {
	case p.ending == bySuspending:
		s.message(a, "0001000000000006"+"0a01011201"+"01")
	case p.ending == byAbort:
		time.Sleep(s.iv.cfg.Defaults.InactivityTimeout + s.iv.cfg.Defaults.AbortTimeout + time.Minute)
	case p.ending == byError && p.head:
		s.message(a, frame(protocol.Error, "08f403"))
	case p.ending == byStatus && !p.head:
		a.Response(endpoint.Head{Status: 500})
		a.End(nil)
	default:
		a.End(endpoint.ErrClosed)
	}
}

// check compares what an attempt was sent with the journal.
func (s *stage) check(w *tape, all bool) {
	s.t.Helper()
	synctest.Wait()
	known, sent := w.entries(s.t)
	stored := s.entries()
	var want []journal.Entry
	for i, e := range stored {
		if i < known || e.Type.IsNotification() {
			want = append(want, e)
		}
	}
	same := func(a, b journal.Entry) bool { return a.Type == b.Type && string(a.Payload) == string(b.Payload) }
	switch {
	case s.wrong != "":
	case known < w.journal:
		s.wrong = fmt.Sprintf("the journal had %d entries when the attempt began, its replay %d", w.journal, known)
	case len(sent) > len(want) || !slices.EqualFunc(sent, want[:len(sent)], same):
		s.wrong = fmt.Sprintf("the attempt was sent %v, the journal says %v", kinds(sent), kinds(want))
	case all && len(sent) < len(want):
		s.wrong = fmt.Sprintf("the open stream was sent %v, the journal says %v", kinds(sent), kinds(want))
	}
}

func kinds(entries []journal.Entry) (list []string) {
	for _, e := range entries {
		list = append(list, fmt.Sprintf("%v %x", e.Type, e.Payload))
	}
	return list
}

func (s *stage) entries() (list []journal.Entry) {
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	inv, err := s.shard.tables.Invocation(s.id)
	require.NoError(s.t, err)
	for i := range inv.Length {
		e, err := s.shard.tables.Entry(s.id, i)
		require.NoError(s.t, err)
		list = append(list, e)
	}
	return list
}
