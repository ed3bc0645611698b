package invoker

import (
	"math/rand/v2"
	"time"

	"platform/internal/feature"
	"platform/internal/stats"
	"platform/internal/tokenbucket"
	"platform/internal/tracing"
	"platform/invoker/endpoint"
	"platform/invoker/identity"
	"platform/metadata"
)

// Config configures an Invoker.
type Config struct {
	// Level is the cluster's feature level as known to this node; nil: the first.
	Level func() feature.Level
	// Stats counts failed attempts; may be nil.
	Stats *stats.Counters
	// Tracer records attempts as spans; nil: none.
	Tracer *tracing.Tracer
	// Defaults are the options of handlers that announce none: timeouts, retentions and the
	// retry policy. Invoker.SetDefaults changes them.
	Defaults metadata.Defaults
	// ConcurrentInvocations bounds the concurrently open attempts of the node; the rest
	// wait, and services share the slots. 0 means unbounded.
	ConcurrentInvocations int
	// ServiceInvocations bounds the open attempts of one service. 0 means unbounded.
	ServiceInvocations int
	// StartRate bounds how many attempts start. If it is a bound, services take turns.
	StartRate tokenbucket.Rate
	// ActionRate bounds how many journal commands of handlers are accepted; handlers wait.
	ActionRate tokenbucket.Rate
	// NoResponseWarning is the time without response headers after which an attempt is
	// marked, logged and counted; it continues. 0: never.
	NoResponseWarning time.Duration
	// MessageSizeLimit is the size in bytes from which a message of an endpoint is rejected
	// (RT0003).
	MessageSizeLimit int
	// MessageSizeWarning is the size in bytes from which a message is logged.
	MessageSizeWarning int
	// EagerStateLimit is how many bytes of an object's state are sent with an attempt's
	// start; 0: none.
	EagerStateLimit int
	// StateSizeLimit bounds the bytes of the keys and values of an object's state (RT0027); 0
	// is no limit.
	StateSizeLimit int
	// MemoryLimit bounds the bytes of payloads that all attempts hold, in transit to
	// endpoints and from them to the log; beyond it they wait. 0 is no limit. Copies and
	// overhead add about twice that.
	MemoryLimit int
	// InvocationMemoryLimit bounds the bytes that one attempt holds; beyond it the attempt
	// fails (RT0001). 0 is no limit.
	InvocationMemoryLimit int
	// MaxAwaitDepth is the maximum nesting depth of awaited futures (RT0025); 0: the
	// maximum of the journal.
	MaxAwaitDepth int
	// EnableV7 lets attempts use version 7 of the service protocol.
	EnableV7 bool
	// FlowControl allows handlers to give their calls a scope and a limit key.
	FlowControl bool
	// AdditionalHeaders are sent with every request to an endpoint. Those of a deployment
	// take precedence.
	AdditionalHeaders map[string]string
	// Identity signs the requests; nil leaves them unsigned.
	Identity *identity.Signer
	// Random generates the random parts of IDs; nil is the runtime's generator.
	Random func() uint64
	// Spread reports whether a callee should not be in the partition of its caller, although it
	// may be in any, because this node is busy; nil: it never is.
	Spread func() bool
	// Endpoint configures the connections.
	Endpoint endpoint.Config
	// Open replaces HTTP as the transport to endpoints, for tests that simulate them; nil:
	// not replaced.
	Open func(endpoint.Receiver) Stream
}

// DefaultConfig returns the configuration of an unconfigured server.
func DefaultConfig() Config {
	return Config{
		Defaults:              metadata.StandardDefaults(),
		ConcurrentInvocations: 1000,
		NoResponseWarning:     30 * time.Second,
		MessageSizeLimit:      32 << 20,
		MessageSizeWarning:    10 << 20,
		EagerStateLimit:       32 << 20,
		StateSizeLimit:        64 << 20,
		MemoryLimit:           512 << 20,
		InvocationMemoryLimit: 256 << 20,
		Random:                rand.Uint64,
		Endpoint:              endpoint.DefaultConfig(),
	}
}
