package invoker

import (
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"platform/internal/ids"
	"platform/internal/logsample"
	"platform/internal/tokenbucket"
	"platform/invoker/endpoint"
	"platform/metadata"
	"platform/partition/attempts"
)

// Registry provides deployments and handlers.
type Registry interface {
	// Schemas returns the newest view. It must be cheap.
	Schemas() *metadata.Schemas
}

// Stream is the part of endpoint.Stream that attempts use.
type Stream interface {
	Write(chunks ...[]byte)
	CloseWrite()
	Finish()
	Reset()
}

// Invoker runs the attempts of a node.
type Invoker struct {
	cfg            Config
	defaults       atomic.Pointer[metadata.Defaults] // in effect
	registry       Registry
	log            *slog.Logger
	client         *endpoint.Client
	open           func(endpoint.Receiver) Stream
	slots          slots
	actions        actions
	memory         budget
	loads          chan struct{} // a slot for each journal that is being read
	routes         routes
	sampler        *logsample.Sampler[sampleKey]
	silentAttempts silentAttempts
	processPauses  *processPauses
	failureTexts   atomic.Int64 // bytes, see maxFailureTexts
	backoffRecords atomic.Int64 // of tasks that back off, see shedLocked

	mu       sync.Mutex // covers sessions
	sessions map[*Session]struct{}
}

// SetDefaults changes Config.Defaults for attempts and calls that begin later.
func (iv *Invoker) SetDefaults(d metadata.Defaults) { iv.defaults.Store(&d) }

// New returns an invoker without sessions. Close it after all of them.
func New(cfg Config, registry Registry, log *slog.Logger) *Invoker {
	if cfg.Spread == nil {
		cfg.Spread = func() bool { return false }
	}
	if cfg.Random == nil {
		cfg.Random = rand.Uint64
	}
	iv := &Invoker{cfg: cfg, registry: registry, log: log, sessions: map[*Session]struct{}{}}
	iv.SetDefaults(cfg.Defaults)
	iv.slots.limit, iv.slots.perService, iv.slots.maxRecords = cfg.ConcurrentInvocations, cfg.ServiceInvocations, maxRecords
	iv.slots.reopen = iv.reopen
	iv.slots.starts = throttle{Bucket: tokenbucket.New(cfg.StartRate), onToken: iv.startsDue}
	iv.actions.tokens = throttle{Bucket: tokenbucket.New(cfg.ActionRate), onToken: iv.actions.due}
	iv.sampler = logsample.New[sampleKey](sampleLimit, sampleWindow, maxSamples)
	iv.memory.limit, iv.memory.ceiling = cfg.MemoryLimit, cfg.InvocationMemoryLimit
	iv.loads = make(chan struct{}, 4*runtime.GOMAXPROCS(0))
	iv.routes.headers, iv.routes.signer = cfg.AdditionalHeaders, cfg.Identity
	iv.processPauses = newProcessPauses(iv.confirm, iv.processWasPaused)
	cfg.Endpoint.MaySend = iv.processPauses.connected
	iv.client = endpoint.NewClient(cfg.Endpoint)
	iv.processPauses.begin()
	if iv.open = cfg.Open; iv.open == nil {
		iv.open = func(r endpoint.Receiver) Stream { return iv.client.Open(r) }
	}
	return iv
}

// Close closes all connections and waits for their users.
func (iv *Invoker) Close() {
	iv.client.Close()
	iv.processPauses.end()
}

// Client returns the client of attempts, for discovery to share.
func (iv *Invoker) Client() *endpoint.Client { return iv.client }

// Status returns the state of an invocation's attempts that is not stored; false if no
// session of this node runs or retries it.
func (iv *Invoker) Status(id ids.Invocation) (attempts.Status, bool) {
	if t := iv.task(id); t != nil {
		return t.attemptStatus(), true
	}
	return attempts.Status{}, false
}

// task returns the task of an invocation, nil if there is none.
func (iv *Invoker) task(id ids.Invocation) *task {
	iv.mu.Lock()
	defer iv.mu.Unlock()
	for s := range iv.sessions {
		if t := s.task(id); t != nil {
			return t
		}
	}
	return nil
}
