package raftgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore/logstoretest"
)

// aloneGroup returns a leading group of one and its journal.
func aloneGroup(t *testing.T) (*Group, *journal) {
	n := startNode(t, t.TempDir(), "")
	t.Cleanup(n.stop)
	j := memJournal(t)
	return openAlone(t, n.config(1, j, n.voter())), j
}

// openAlone opens a group that leads. It has stored the entry with which its leadership begins.
func openAlone(t *testing.T, cfg Config) *Group {
	leading := make(chan struct{})
	lead := sync.OnceFunc(func() { close(leading) })
	cfg.Lead = func(context.Context, uint64) error {
		lead()
		return nil
	}
	g, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Shutdown(context.Background())) })
	<-leading
	return g
}

// run runs a proposer until the returned function is called.
func run[R any](t *testing.T, p *Proposer[R]) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}

// outcomes collects what became of commands.
type outcomes struct {
	mu      sync.Mutex
	wg      sync.WaitGroup
	results []uint64
	errs    []error
}

func (o *outcomes) expect(t *testing.T, p *Proposer[uint64], command []byte) {
	o.wg.Add(1)
	require.NoError(t, p.Submit(command, 0, o))
}

func (o *outcomes) Complete(r uint64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.wg.Done()
	if err != nil {
		o.errs = append(o.errs, err)
		return
	}
	o.results = append(o.results, r)
}

// countingSeal notes the sizes of batches.
type countingSeal struct {
	mu    sync.Mutex
	sizes []int
	bytes []int
}

func (s *countingSeal) seal(batch [][]byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range batch {
		n += len(c)
	}
	s.sizes, s.bytes = append(s.sizes, len(batch)), append(s.bytes, n)
	return sealJournal(batch)
}

func TestCommandsAreBatchedInOrder(t *testing.T) {
	g, j := aloneGroup(t)
	seal := &countingSeal{}
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: seal.seal})
	require.NoError(t, err)
	var o outcomes
	for i := range 1000 { // before Run: all of them wait
		o.expect(t, p, fmt.Appendf(nil, "command %d", i+1))
	}
	stop := run(t, p)
	o.wg.Wait()
	stop()
	require.Empty(t, o.errs)
	require.Equal(t, []int{256, 256, 256, 232}, seal.sizes)
	require.Len(t, o.results, 1000)
	for i, r := range o.results {
		require.Equal(t, uint64(i+1), r, "results come in the order of commands")
	}
	requireCommands(t, j, 1000)
}

func TestEntriesAreBoundedByBytes(t *testing.T) {
	g, _ := aloneGroup(t)
	seal := &countingSeal{}
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: seal.seal, MaxBatchBytes: 1000})
	require.NoError(t, err)
	var o outcomes
	for _, size := range []int{400, 400, 400, 3000, 1000, 1} {
		o.expect(t, p, make([]byte, size))
	}
	stop := run(t, p)
	o.wg.Wait()
	stop()
	require.Empty(t, o.errs)
	require.Equal(t, []int{800, 400, 3000, 1000, 1}, seal.bytes)
}

// What applying a command takes counts like its bytes.
func TestLargerCommandsCountForTheBoundsOfAnEntry(t *testing.T) {
	g, _ := aloneGroup(t)
	seal := &countingSeal{}
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: seal.seal, MaxBatchBytes: 1000, maxCommandBytes: 10, maxQueueBytes: 5000})
	require.NoError(t, err)
	var o outcomes
	for _, extra := range []int{0, 400, 400, 400, 3000, 0} {
		o.wg.Add(1)
		require.NoError(t, p.Submit([]byte("1"), extra, &o))
	}
	require.ErrorIs(t, p.Submit([]byte("1"), 1000, &o), ErrOverloaded)
	stop := run(t, p)
	o.wg.Wait()
	stop()
	require.Empty(t, o.errs)
	require.Equal(t, []int{3, 1, 1, 1}, seal.sizes)
	require.Zero(t, p.queue.bytes())
	require.Zero(t, p.inBytes)
	require.Zero(t, p.inCommands)
}

func TestQueueIsBounded(t *testing.T) {
	g, _ := aloneGroup(t)
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealJournal, maxQueueCommands: 3, maxQueueBytes: 100})
	require.NoError(t, err)
	var o outcomes
	o.expect(t, p, make([]byte, 60))
	require.ErrorIs(t, p.Submit(make([]byte, 41), 0, &o), ErrOverloaded)
	o.expect(t, p, make([]byte, 20))
	o.expect(t, p, make([]byte, 20))
	require.ErrorIs(t, p.Submit(nil, 0, &o), ErrOverloaded)
	stop := run(t, p)
	o.wg.Wait()
	_, err = p.do(t.Context(), []byte("there is room again"))
	require.NoError(t, err)
	stop()
}

func TestDeferredCommandsWaitForAnother(t *testing.T) {
	g, _ := aloneGroup(t)
	seal := &countingSeal{}
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: seal.seal, maxDeferral: time.Hour, MaxBatchCommands: 3})
	require.NoError(t, err)
	var o outcomes
	deferred := func() {
		o.wg.Add(1)
		require.NoError(t, p.SubmitDeferred([]byte("deferred"), &o))
	}
	deferred()
	deferred()
	require.Empty(t, p.wake)
	require.Nil(t, p.take())
	stop := run(t, p)
	o.expect(t, p, []byte("other"))
	o.wg.Wait()
	require.Equal(t, []int{3}, seal.sizes)

	for range 3 { // a full entry waits for nothing
		deferred()
	}
	o.wg.Wait()
	require.Equal(t, []int{3, 3}, seal.sizes)

	deferred()
	p.endDeferral()
	o.wg.Wait()
	require.Equal(t, []int{3, 3, 1}, seal.sizes)
	require.Zero(t, p.deferred)
	require.False(t, p.due)

	deferred()
	stop()
	o.wg.Wait()
	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7}, o.results)
	require.Len(t, o.errs, 1)
	require.ErrorIs(t, o.errs[0], ErrStopped)
}

func TestDeferredCommandsWaitForALimitedTime(t *testing.T) {
	g, _ := aloneGroup(t)
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealJournal})
	require.NoError(t, err)
	defer run(t, p)()
	for i := range uint64(3) {
		var o outcomes
		o.wg.Add(1)
		require.NoError(t, p.SubmitDeferred([]byte("deferred"), &o))
		o.wg.Wait()
		require.Equal(t, []uint64{i + 1}, o.results)
	}
}

// Commands that do not fit into the entry of the command for which they waited follow in the next one.
func TestDeferredCommandsBeyondAnEntryFollow(t *testing.T) {
	g, _ := aloneGroup(t)
	seal := &countingSeal{}
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: seal.seal, maxDeferral: time.Hour, MaxBatchCommands: 2})
	require.NoError(t, err)
	var o outcomes
	o.expect(t, p, []byte("other"))
	o.wg.Add(2)
	for range 2 {
		require.NoError(t, p.SubmitDeferred([]byte("deferred"), &o))
	}
	o.expect(t, p, []byte("other"))
	stop := run(t, p)
	o.wg.Wait()
	stop()
	require.Equal(t, []int{2, 2}, seal.sizes)
	require.Equal(t, []uint64{1, 2, 3, 4}, o.results)
	require.Zero(t, p.deferred)
}

func TestFollowerRefusesDefinitely(t *testing.T) {
	c := newTestCluster(t, 100)
	f := (c.leader() + 1) % 3
	p, err := NewProposer[uint64](c.groups[f], ProposerConfig{Seal: sealJournal})
	require.NoError(t, err)
	stop := run(t, p)
	defer stop()
	_, err = p.do(t.Context(), []byte("x"))
	require.ErrorIs(t, err, ErrNotLeader)
	require.True(t, Definite(err))
}

func TestStoppedProposerRefusesDefinitely(t *testing.T) {
	g, j := aloneGroup(t)
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealJournal})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var o outcomes
	o.expect(t, p, []byte("never proposed"))
	require.ErrorIs(t, p.Run(ctx), context.Canceled)
	o.wg.Wait()
	require.ErrorIs(t, p.Submit(nil, 0, &o), ErrStopped)
	require.Len(t, o.errs, 1)
	require.ErrorIs(t, o.errs[0], ErrStopped)
	requireCommands(t, j, 0)
}

// The outcome of a command may end the leadership: what follows would then leave a gap.
func TestNothingIsProposedAfterACompletionHasEndedTheContext(t *testing.T) {
	g, j := aloneGroup(t)
	p, err := NewProposer[uint64](g, ProposerConfig{MaxBatchCommands: 1, Seal: func(batch [][]byte) ([]byte, error) {
		if bytes.Equal(batch[0], []byte("first")) {
			return nil, errPlanted
		}
		return sealJournal(batch)
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, p.Submit([]byte("first"), 0, CompletionFunc[uint64](func(_ uint64, err error) {
		require.ErrorIs(t, err, errPlanted)
		cancel()
	})))
	var o outcomes
	o.expect(t, p, []byte("second"))
	require.ErrorIs(t, p.Run(ctx), context.Canceled)
	o.wg.Wait()
	require.Len(t, o.errs, 1)
	require.ErrorIs(t, o.errs[0], ErrStopped)
	requireCommands(t, j, 0)
}

func TestSealErrorConcernsItsBatchOnly(t *testing.T) {
	g, _ := aloneGroup(t)
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: func(batch [][]byte) ([]byte, error) {
		if bytes.Equal(batch[0], []byte("bad")) {
			return nil, errPlanted
		}
		return sealJournal(batch)
	}})
	require.NoError(t, err)
	stop := run(t, p)
	defer stop()
	_, err = p.do(t.Context(), []byte("bad"))
	require.ErrorIs(t, err, errPlanted)
	_, err = p.do(t.Context(), []byte("good"))
	require.NoError(t, err)
}

func TestWrongNumberOfResultsIsAnUnknownOutcome(t *testing.T) {
	g, _ := aloneGroup(t)
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: func([][]byte) ([]byte, error) {
		return sealJournal([][]byte{[]byte("a"), []byte("b")})
	}})
	require.NoError(t, err)
	stop := run(t, p)
	defer stop()
	_, err = p.do(t.Context(), []byte("one"))
	require.ErrorIs(t, err, ErrUnknownOutcome)
}

// TestLostLeadershipLeavesTheOutcomeUnknown proposes at a leader that cannot
// reach any node.
func TestLostLeadershipLeavesTheOutcomeUnknown(t *testing.T) {
	c := newTestCluster(t, 100)
	propose := func(l int) error {
		p, err := NewProposer[uint64](c.groups[l], ProposerConfig{Seal: func(batch [][]byte) ([]byte, error) {
			for _, v := range c.voters {
				c.gates[l].close(requests(v))
			}
			return sealJournal(batch)
		}})
		require.NoError(t, err)
		stop := run(t, p)
		_, err = p.do(t.Context(), []byte("x"))
		stop()
		for _, v := range c.voters {
			c.gates[l].open(requests(v))
		}
		return err
	}
	err := propose(c.leader())
	for errors.Is(err, ErrNotLeader) { // a busy machine deposed it before
		err = propose(c.leader())
	}
	require.ErrorIs(t, err, ErrUnknownOutcome)
	require.False(t, Definite(err))
}

func TestErrorsAreSorted(t *testing.T) {
	require.NoError(t, proposalError(nil))
	for err, definite := range map[error]bool{
		raft.ErrNotLeader: true, raft.ErrEnqueueTimeout: true, raft.ErrLeadershipTransferInProgress: true,
		raft.ErrLeadershipLost: false, raft.ErrRaftShutdown: false, raft.ErrAbortedByRestore: false,
		errors.New("write: no space left"): false,
	} {
		sorted := proposalError(err)
		require.Equal(t, definite, Definite(sorted), err)
		require.NotEqual(t, definite, errors.Is(sorted, ErrUnknownOutcome), err)
		require.ErrorIs(t, sorted, err)
	}
}

type ignoreOutcome struct{}

func (ignoreOutcome) Complete(uint64, error) {}

func TestSubmitIsCheap(t *testing.T) {
	g, _ := aloneGroup(t)
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealJournal, maxQueueCommands: 1 << 20})
	require.NoError(t, err)
	command := []byte("command")
	var done Completion[uint64] = ignoreOutcome{}
	allocs := testing.AllocsPerRun(10_000, func() {
		if p.Submit(command, 0, done) != nil {
			t.Fatal("refused")
		}
	})
	require.LessOrEqual(t, allocs, 1.0)
	run(t, p)()
}

// heldGroup opens a group without followers whose writes can be held.
func heldGroup(t *testing.T) (*Group, *logstoretest.Held) {
	n := startNode(t, t.TempDir(), "")
	t.Cleanup(n.stop)
	cfg := n.config(1, memJournal(t), n.voter())
	storage := &logstoretest.Held{Storage: cfg.Storage}
	cfg.Storage = storage
	return openAlone(t, cfg), storage
}

// What arrives while an entry is written makes up one entry.
func TestCommandsJoinTheEntryThatFollowsTheOneBeingWritten(t *testing.T) {
	g, storage := heldGroup(t)
	seal := &countingSeal{}
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: seal.seal})
	require.NoError(t, err)
	stop := run(t, p)
	defer stop()
	var o outcomes
	for range 10 {
		write := storage.Hold()
		o.expect(t, p, []byte("written"))
		<-write.Arrived
		for i := range 20 {
			o.expect(t, p, []byte("waiting"))
			runtime.Gosched()
			commands, bulk := p.Backlog()
			require.Equal(t, 1+i+1, commands)
			require.False(t, bulk)
		}
		close(write.Released)
		o.wg.Wait()
		require.Eventually(t, func() bool { n, _ := p.Backlog(); return n == 0 }, time.Minute, time.Millisecond)
	}
	require.Empty(t, o.errs)
	for i, size := range seal.sizes {
		require.Equal(t, []int{1, 20}[i%2], size, "%v", seal.sizes)
	}
	require.Len(t, seal.sizes, 20)
}

// With followers, what arrives before an entry has its outcome makes up one entry, even when that
// is in the leader's log already.
func TestCommandsJoinTheEntryThatFollowsTheOneInFlight(t *testing.T) {
	c := newTestCluster(t, 100)
	err := joinAfterOutcome(t, c.groups[c.leader()])
	for errors.Is(err, ErrNotLeader) || errors.Is(err, ErrUnknownOutcome) { // a busy machine deposed it
		err = joinAfterOutcome(t, c.groups[c.leader()])
	}
	require.NoError(t, err)
}

func joinAfterOutcome(t *testing.T, g *Group) error {
	seal := &countingSeal{}
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: seal.seal})
	require.NoError(t, err)
	defer run(t, p)()
	applied, resume := make(chan error, 1), make(chan struct{})
	require.NoError(t, p.Submit([]byte("first"), 0, CompletionFunc[uint64](func(_ uint64, err error) {
		applied <- err
		<-resume
	})))
	err = <-applied
	var o outcomes
	waiting := true
	for range 5 {
		o.expect(t, p, []byte("waiting"))
		p.mu.Lock()
		waiting = waiting && !p.readyLocked()
		p.mu.Unlock()
	}
	close(resume)
	require.True(t, waiting)
	o.wg.Wait()
	if err = errors.Join(append(o.errs, err)...); err == nil {
		require.Equal(t, []int{1, 5}, seal.sizes)
	}
	return err
}

// sealHook calls a function once, while the first batch is sealed.
func sealHook(seal *countingSeal, first func()) func([][]byte) ([]byte, error) {
	var once sync.Once
	return func(batch [][]byte) ([]byte, error) {
		data, err := seal.seal(batch)
		once.Do(first)
		return data, err
	}
}

// What arrives after an entry was proposed joins it until it is written.
func TestCommandsJoinAnEntryThatIsNotWrittenYet(t *testing.T) {
	g, j := aloneGroup(t)
	var (
		p    *Proposer[uint64]
		o    outcomes
		seal countingSeal
	)
	p, err := NewProposer[uint64](g, ProposerConfig{MaxBatchCommands: 4, Seal: sealHook(&seal, func() {
		for _, command := range []string{"3", "4", "5"} {
			o.expect(t, p, []byte(command))
		}
	})})
	require.NoError(t, err)
	o.expect(t, p, []byte("1"))
	o.expect(t, p, []byte("2"))
	defer run(t, p)()
	o.wg.Wait()
	require.Empty(t, o.errs)
	require.Equal(t, []int{2, 4, 1}, seal.sizes, "the second time it is sealed with all that fit")
	commands, err := j.commands()
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "3", "4", "5"}, commands)
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Zero(t, p.queue.bytes())
	require.Zero(t, p.inBytes)
}

// A bulk command that follows commands which have joined an entry is proposed without another reason.
func TestAnOrderedBulkCommandFollowsCommandsThatJoined(t *testing.T) {
	g, j := aloneGroup(t)
	var (
		p    *Proposer[uint64]
		o    outcomes
		seal countingSeal
	)
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealHook(&seal, func() {
		o.expect(t, p, []byte("2"))
		o.wg.Add(1)
		require.NoError(t, p.SubmitBulk(Bulk{Size: 1, Ordered: true, Encode: func() ([]byte, error) { return []byte("bulk"), nil }}, &o))
	})})
	require.NoError(t, err)
	defer run(t, p)()
	o.expect(t, p, []byte("1"))
	o.wg.Wait()
	require.Empty(t, o.errs)
	commands, err := j.commands()
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "bulk"}, commands)
}

// do submits one command and waits for its outcome, which is unknown if ctx ends.
func (p *Proposer[R]) do(ctx context.Context, command []byte) (R, error) {
	type outcome struct {
		result R
		err    error
	}
	answer := make(chan outcome, 1)
	err := p.Submit(command, 0, CompletionFunc[R](func(r R, err error) { answer <- outcome{r, err} }))
	if err != nil {
		return *new(R), err
	}
	select {
	case o := <-answer:
		return o.result, o.err
	case <-ctx.Done():
		return *new(R), fmt.Errorf("%w: %w", ErrUnknownOutcome, ctx.Err())
	}
}
