package partition

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/failpoint"
	"platform/internal/pebbledb"
	"platform/partition/machine"
	"platform/partition/store"
)

// errDiverged means that the tables of a replica differ from those of a majority.
var errDiverged = errors.New("tables differ from those of the other replicas")

// keptDigests is how many results a replica keeps for requests of the leader.
const keptDigests = 8

// DigestRound identifies one scan of all replicas.
type DigestRound struct {
	Epoch uint64
	Round uint64
}

// DigestResponse is the result of a replica for a round.
type DigestResponse struct {
	Result *machine.DigestResult // nil: none yet, or never if Missed
	Missed bool                  // the replica has passed the round without a result
}

// DigestConfig configures the comparison of replicas.
type DigestConfig struct {
	// Fetch requests another replica's result of a round; nil: the replicas are not compared.
	Fetch func(ctx context.Context, to raft.Server, partition uint32, r DigestRound) (DigestResponse, error)
	// Entries is the number of log entries after which the leader compares replicas, 4096 if 0,
	// and Pause the minimum time in between, a second if 0.
	Entries uint64
	pause   time.Duration
	Metrics *DigestMetrics // nil: none
}

func (c DigestConfig) withDefaults() DigestConfig {
	c.Entries = cmp.Or(c.Entries, 4096)
	c.pause = cmp.Or(c.pause, time.Duration(failpoint.Or(failpoint.DigestPauseMillis, 1000))*time.Millisecond)
	return c
}

// digests computes the digests that the log requests. Rows are read in a separate
// goroutine, one round at a time: a round that starts while another is in progress is
// missed, which happens while the log is replayed.
type digests struct {
	cfg        DigestConfig
	tables     *store.Partition
	quarantine func(error) // of a replica that differs from others
	damaged    func(error) // reports rows that cannot be read
	log        *slog.Logger

	ctx    context.Context //nolint:containedctx // of scans, which applying starts; ends with the replica
	cancel context.CancelFunc
	wg     sync.WaitGroup

	entries atomic.Uint64 // applied since the last round
	due     chan struct{} // receives a value when a round is due

	mu      sync.Mutex // covers the fields below
	closed  bool
	busy    bool
	state   uint64 // number of replacements of the tables, which invalidate results
	last    DigestRound
	results []machine.DigestResult // newest last
	agreed  []machine.DigestResult // of rounds whose own result is still pending
	next    []byte                 // start key of the next round
	changed chan struct{}          // closed when a result is added
}

func newDigests(tables *store.Partition, cfg DigestConfig, log *slog.Logger, quarantine, damaged func(error)) *digests {
	d := &digests{
		cfg: cfg, tables: tables, quarantine: quarantine, damaged: damaged, log: log,
		due: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// close stops the scan in progress and waits for it.
func (d *digests) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	d.wg.Wait()
}

// applied counts an entry and signals the leader when a round is due.
func (d *digests) applied() {
	if d.entries.Add(1) == d.cfg.Entries {
		signal(d.due)
	}
}

// apply carries out a command. The tables are committed exactly up to the command. It is
// called on the apply goroutine.
func (d *digests) apply(epoch uint64, c *machine.Digest) {
	if c.Agreed != nil {
		d.compare(c.Agreed)
	}
	if c.Scan != nil {
		d.entries.Store(0)
		d.begin(epoch, c.Scan)
	}
}

// begin starts a scan of the current tables.
func (d *digests) begin(epoch uint64, s *machine.DigestScan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = DigestRound{epoch, s.Round}
	if d.closed || d.busy {
		d.cfg.Metrics.missed()
		d.wakeLocked()
		return
	}
	view, err := d.tables.Export()
	if err != nil {
		d.failLocked(err)
		return
	}
	d.busy = true
	state, scan := d.state, *s
	scan.From = bytes.Clone(s.From) // it points into the log entry
	d.wg.Go(func() { d.scan(view, state, epoch, &scan) })
}

func (d *digests) scan(view *store.Export, state, epoch uint64, s *machine.DigestScan) {
	found, err := view.Digest(d.ctx, s.From, s.Rows, s.Bytes)
	err = errors.Join(err, view.Close())
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy = false
	defer d.wakeLocked()
	if state != d.state || d.ctx.Err() != nil {
		return
	}
	if err != nil {
		d.failLocked(err)
		return
	}
	d.cfg.Metrics.scanned(&found)
	result := machine.DigestResult{Epoch: epoch, Round: s.Round, Rows: found.Rows, Next: found.Next, Sum: found.Sum[:]}
	if d.results = append(d.results, result); len(d.results) > keptDigests {
		d.results = d.results[1:]
	}
	d.next = found.Next
	for i := range d.agreed {
		if d.agreed[i].Epoch == epoch && d.agreed[i].Round == s.Round {
			d.checkLocked(&result, &d.agreed[i])
		}
	}
	d.agreed = nil // the others belong to missed rounds
}

// failLocked handles rows that cannot be read. The replica does not stop by itself: another one may have damaged rows in
// the same round.
func (d *digests) failLocked(err error) {
	d.wakeLocked()
	switch {
	case d.closed || errors.Is(err, store.ErrClosed):
	case store.Failed(err):
		d.log.Warn("could not compute digest of tables", "err", err)
	default:
		d.cfg.Metrics.differed()
		err = pebbledb.Explain(err)
		d.log.Error("tables cannot be read", "err", err)
		d.damaged(err)
	}
}

func (d *digests) wakeLocked() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// compare compares this replica's result of a round with the agreed one, now or when the
// result is available.
func (d *digests) compare(agreed *machine.DigestResult) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if own := d.resultLocked(DigestRound{agreed.Epoch, agreed.Round}); own != nil {
		d.checkLocked(own, agreed)
		return
	}
	if d.busy && d.last == (DigestRound{agreed.Epoch, agreed.Round}) && len(d.agreed) < keptDigests {
		d.agreed = append(d.agreed, cloneResult(agreed))
	}
}

// cloneResult copies the slices, which point into a log entry.
func cloneResult(r *machine.DigestResult) machine.DigestResult {
	c := *r
	c.Next, c.Sum = bytes.Clone(r.Next), bytes.Clone(r.Sum)
	return c
}

func (d *digests) checkLocked(own, agreed *machine.DigestResult) {
	if sameDigest(own, agreed) {
		return
	}
	d.cfg.Metrics.differed()
	err := fmt.Errorf("%w: digest of %d rows is %x, a majority has %x of %d rows (round %d of epoch %d)",
		errDiverged, own.Rows, own.Sum, agreed.Sum, agreed.Rows, own.Round, own.Epoch)
	d.log.Error("replica has diverged", "err", err)
	if !d.closed {
		d.wg.Go(func() { d.quarantine(err) })
	}
}

func sameDigest(a, b *machine.DigestResult) bool {
	return a.Rows == b.Rows && bytes.Equal(a.Next, b.Next) && bytes.Equal(a.Sum, b.Sum)
}

func (d *digests) resultLocked(r DigestRound) *machine.DigestResult {
	for i := range d.results {
		if d.results[i].Epoch == r.Epoch && d.results[i].Round == r.Round {
			return &d.results[i]
		}
	}
	return nil
}

// response returns this replica's result of a round, and a channel that is closed when the
// response may have changed.
func (d *digests) response(r DigestRound) (DigestResponse, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if own := d.resultLocked(r); own != nil {
		result := *own
		return DigestResponse{Result: &result}, d.changed
	}
	later := d.last.Epoch > r.Epoch || d.last.Epoch == r.Epoch && d.last.Round > r.Round
	return DigestResponse{Missed: later || d.last == r && !d.busy}, d.changed
}

// from returns the start key of the next round.
func (d *digests) from() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.next
}

// replaced discards the results of tables that are no longer in use.
func (d *digests) replaced() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state++
	d.results, d.agreed, d.next = nil, nil, nil
	d.wakeLocked()
}

// Digest returns this replica's result of a round.
func (p *Partition) Digest(r DigestRound) DigestResponse {
	response, _ := p.digests.response(r)
	return response
}

// diverged quarantines this replica, whose tables differ from those of a majority.
func (p *Partition) diverged(err error) {
	select {
	case <-p.opened:
		p.Quarantine(err)
	case <-p.digests.ctx.Done(): // the partition failed to open
	}
}
