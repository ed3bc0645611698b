package query

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"platform/flowcontrol"
	"platform/internal/access"
	"platform/internal/metrics"
	"platform/internal/subscription"
	"platform/internal/tokenbucket"
	"platform/metadata"
	"platform/partition/listing"
)

// Config configures what an engine reads, and limits queries. Zero limits mean the defaults.
type Config struct {
	Partitions Partitions
	Registry   func() *metadata.Schemas
	// Defaults returns the options of handlers that announce none, which may change; if nil, all are 0.
	Defaults func() *metadata.Defaults
	// Rules returns the flow-control rules, Cluster the rows of the cluster tables. If nil, these
	// tables are empty.
	Rules   func() *flowcontrol.Book
	Cluster Cluster
	// Jobs returns the jobs; if nil, there are none.
	Jobs func() []metadata.Job
	// Audit returns the records of the audit log, the newest first; if nil, there are none.
	Audit func() ([]metadata.AuditRecord, error)
	// Subscriptions returns the event subscriptions and their state; if nil, there are none.
	Subscriptions func(context.Context) []SubscriptionState
	// DeadLetters returns up to limit dead letters of a subscription, behind one or from the first on
	// if that is nil, without keys, values and headers; if it is nil, there are none.
	DeadLetters func(ctx context.Context, subscription string, after *subscription.RecordID, limit int) (letters []subscription.DeadLetter, silent []string)
	// Failures returns the failure groups of all partitions; if nil, there are none.
	Failures func(context.Context) ([]listing.Group, error)
	// FailureMark returns the mark that operators have set on a failure group; if nil, groups have
	// no marks.
	FailureMark func(group string) (metadata.FailureMark, bool)

	// Timeout limits the duration of a query; 30 s.
	Timeout time.Duration
	// MaxRows and MaxBytes limit a result; 100,000 and 64 MiB.
	MaxRows, MaxBytes int
	// Concurrent is the number of queries that may run concurrently; 4.
	Concurrent int
	// queueTimeout limits the wait for a slot while the maximum number of queries runs; 2 s.
	queueTimeout time.Duration
	// MemoryLimit limits the memory for sorting and grouping of all queries of the process, in
	// bytes; 256 MiB.
	MemoryLimit int64
	// Rate bounds how many queries clients start, not counting those of the server itself; the zero Rate
	// is no bound.
	Rate tokenbucket.Rate
	// clock defaults to time.Now.
	clock func() time.Time
}

// Errors not caused by the query itself.
var (
	// ErrBusy means that the maximum number of queries is running.
	ErrBusy = errors.New("too many queries are running")
	// ErrUnavailable means that a partition could not be read.
	ErrUnavailable = errors.New("not all partitions can be reached at the moment")
	// ErrTimeout means that a query exceeded its timeout.
	ErrTimeout = errors.New("the query took too long")
)

// Engine runs queries. Its methods may be called concurrently.
type Engine struct {
	cfg        Config
	catalog    *catalog
	slots      *slots // of running queries
	processors *processors
	rate       *rateLimit
	// disabled returns why SQL is disabled, nil if it is enabled.
	disabled func() error

	mu     sync.Mutex // covers the fields below
	idle   []*session
	closed bool
}

// NewEngine returns an engine. It allocates memory with the first query.
func NewEngine(cfg Config) *Engine {
	cfg = cfg.withDefaults()
	return &Engine{cfg: cfg, catalog: newCatalog(), slots: newSlots(cfg.Concurrent), processors: newProcessors(), rate: newRateLimit(cfg.Rate), disabled: testDriver}
}

func (c Config) withDefaults() Config {
	orDefault(&c.Timeout, 30*time.Second)
	orDefault(&c.MaxRows, 100_000)
	orDefault(&c.MaxBytes, 64<<20)
	orDefault(&c.Concurrent, 4)
	orDefault(&c.queueTimeout, 2*time.Second)
	orDefault(&c.MemoryLimit, 256<<20)
	if c.Defaults == nil {
		c.Defaults = func() *metadata.Defaults { return &metadata.Defaults{} }
	}
	if c.clock == nil {
		c.clock = time.Now
	}
	return c
}

func orDefault[T comparable](v *T, fallback T) {
	if *v == *new(T) {
		*v = fallback
	}
}

// Bounds are the largest cost of a query and the number of queries that run concurrently.
type Bounds struct {
	Timeout                       time.Duration
	MaxRows, MaxBytes, Concurrent int
}

// Bounds returns the bounds of queries.
func (e *Engine) Bounds() Bounds {
	return Bounds{e.cfg.Timeout, e.cfg.MaxRows, e.cfg.MaxBytes, e.cfg.Concurrent}
}

// Admit takes a token for a query of the client of ctx. The error is a *RateError if there is none.
func (e *Engine) Admit(ctx context.Context) error {
	return e.rate.admit(access.ClientFrom(ctx), e.cfg.clock())
}

// Collector returns the metrics of the engine.
func (e *Engine) Collector() prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) {
		out.Counter(descRateLimited, e.rate.rateLimited())
	}, descRateLimited)
}

var descRateLimited = metrics.Desc("admin_queries_rate_limited_total", "SQL queries that were rejected because of admin.query-engine.rate-limiting.")

// Tables returns the system tables, sorted by schema and name.
func (e *Engine) Tables() []*Table { return e.catalog.tables }

// Close releases the resources of idle sessions. It does not wait for running queries.
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

// Rows receives a result. Its methods are not called concurrently.
type Rows interface {
	// Columns is called once, before the first row.
	Columns(names []string, types []Type, notices []Notice) error
	// Row is called for each row, which is valid only during the call.
	Row(Row) error
}

// query runs a query and passes its rows to rows as they are read. An error caused by the query is
// an *Error. Other errors are ErrBusy, ErrTimeout, ErrUnavailable, ErrDisabled, errors returned by
// rows, and the cause of the end of ctx.
func (e *Engine) query(ctx context.Context, text string, o Options, rows Rows) (Stats, error) {
	if err := e.disabled(); err != nil {
		return Stats{}, err
	}
	client := access.ClientFrom(ctx)
	if err := e.slots.acquire(ctx, client, e.cfg.queueTimeout); err != nil {
		return Stats{}, err
	}
	defer e.slots.release(client)
	ctx, cancel := context.WithTimeoutCause(ctx, e.cfg.Timeout, ErrTimeout)
	defer cancel()
	slice, err := e.processors.begin(ctx)
	defer slice.close()
	if err != nil {
		return Stats{}, e.ended(ctx)
	}
	q, err := e.rewrite(ctx, text)
	if err != nil {
		return Stats{}, err
	}
	s, err := e.session()
	if err != nil {
		return Stats{}, err
	}
	s.begin(ctx, slice, e.cfg.clock(), q.collated)
	s.strong, s.hidePayloads, s.hideAudit, s.limits = o.Strong, o.HidePayloads, o.HideAudit, o.Limits
	err = s.run(q, rows)
	stats := s.stats
	return stats, errors.Join(err, e.release(s))
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
	s.ctx, s.slice = context.Background(), nil
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return s.db.close()
	}
	e.idle = append(e.idle, s)
	return nil
}
