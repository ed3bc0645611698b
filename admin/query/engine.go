package query

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"platform/flowcontrol"
	"platform/metadata"
)

// Config says what an engine reads and how much a query may take. Zero values of the
// bounds mean their defaults.
type Config struct {
	Partitions Partitions
	Registry   func() *metadata.Schemas
	// Rules is the rule book, Cluster has the rows of the cluster's tables; nil: there
	// are none.
	Rules   func() *flowcontrol.Book
	Cluster Cluster

	// Timeout bounds how long a query takes; 30 s.
	Timeout time.Duration
	// MaxRows and MaxBytes bound an answer; 100,000 and 64 MiB.
	MaxRows, MaxBytes int
	// Concurrent is how many queries run at a time; 4.
	Concurrent int
	// Patience is how long a query waits for others to end; 2 s.
	Patience time.Duration
	// MemoryLimit bounds what all queries of the process need for sorting and
	// grouping, in bytes; 256 MiB.
	MemoryLimit int64
	// Clock is time.Now.
	Clock func() time.Time
}

// Errors that are nobody's query's fault.
var (
	// ErrBusy says that as many queries are running as may.
	ErrBusy = errors.New("too many queries are running")
	// ErrUnavailable is wrapped when a partition could not be read.
	ErrUnavailable = errors.New("not all partitions can be reached at the moment")
	// ErrTimeout says that a query took too long.
	ErrTimeout = errors.New("the query took too long")
)

// Engine answers queries. Its methods may be called concurrently.
type Engine struct {
	cfg     Config
	catalog *catalog
	slots   chan struct{} // holds a token for each query that runs
	// disabled returns why no query is answered, nil if they are.
	disabled func() error

	mu     sync.Mutex // covers the fields below
	idle   []*session
	closed bool
}

// NewEngine returns an engine. It takes up memory with the first query.
func NewEngine(cfg Config) *Engine {
	cfg = cfg.withDefaults()
	return &Engine{cfg: cfg, catalog: newCatalog(), slots: make(chan struct{}, cfg.Concurrent), disabled: testDriver}
}

func (c Config) withDefaults() Config {
	orDefault(&c.Timeout, 30*time.Second)
	orDefault(&c.MaxRows, 100_000)
	orDefault(&c.MaxBytes, 64<<20)
	orDefault(&c.Concurrent, 4)
	orDefault(&c.Patience, 2*time.Second)
	orDefault(&c.MemoryLimit, 256<<20)
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return c
}

func orDefault[T comparable](v *T, fallback T) {
	if *v == *new(T) {
		*v = fallback
	}
}

// Tables are the system tables, sorted by schema and name.
func (e *Engine) Tables() []*Table { return e.catalog.tables }

// Close gives up what idle sessions hold. Queries under way are not waited for.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	var errs []error
	for _, s := range e.idle {
		errs = append(errs, s.db.close())
	}
	e.idle = nil
	return errors.Join(errs...)
}

// Rows takes an answer. The methods are called by one goroutine.
type Rows interface {
	// Columns is called once, before the first row.
	Columns(names []string, types []Type) error
	// Row is called for each row, which is valid during the call only.
	Row(Row) error
}

// Query runs a query and hands its rows over as they come. An error of the query's
// text or of what it asks for is an *Error; others are ErrBusy, ErrTimeout,
// ErrUnavailable, ErrDisabled, what rows returned, and the cause of the end of ctx.
func (e *Engine) Query(ctx context.Context, text string, rows Rows) (Stats, error) {
	return e.query(ctx, text, false, rows)
}

func (e *Engine) query(ctx context.Context, text string, strong bool, rows Rows) (Stats, error) {
	if err := e.disabled(); err != nil {
		return Stats{}, err
	}
	q, err := e.rewrite(text)
	if err != nil {
		return Stats{}, err
	}
	if err := e.acquire(ctx); err != nil {
		return Stats{}, err
	}
	defer func() { <-e.slots }()
	s, err := e.session()
	if err != nil {
		return Stats{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.cfg.Timeout, ErrTimeout)
	defer cancel()
	s.begin(ctx, e.cfg.Clock(), q.collated)
	s.strong = strong
	err = s.run(q, rows)
	stats := s.stats
	return stats, errors.Join(err, e.release(s))
}

// acquire waits for a slot.
func (e *Engine) acquire(ctx context.Context) error {
	select {
	case e.slots <- struct{}{}:
		return nil
	default:
	}
	patience := time.NewTimer(e.cfg.Patience)
	defer patience.Stop()
	select {
	case e.slots <- struct{}{}:
		return nil
	case <-patience.C:
		return fmt.Errorf("%w: %d at a time (admin.query-engine.concurrency); try again in a moment", ErrBusy, e.cfg.Concurrent)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *Engine) session() (*session, error) {
	e.mu.Lock()
	if n := len(e.idle); n > 0 {
		s := e.idle[n-1]
		e.idle = e.idle[:n-1]
		e.mu.Unlock()
		return s, nil
	}
	e.mu.Unlock()
	return e.newSession()
}

func (e *Engine) release(s *session) error {
	s.ctx = context.Background()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return s.db.close()
	}
	e.idle = append(e.idle, s)
	return nil
}
