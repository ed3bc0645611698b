package invoker

import (
	"math/rand/v2"
	"time"

	"platform/internal/feature"
	"platform/invoker/endpoint"
	"platform/invoker/identity"
	"platform/metadata"
)

// Config are the settings of an Invoker.
type Config struct {
	// Level is the cluster's feature level as far as this node knows it; nil: the first.
	Level func() feature.Level
	// Defaults are what handlers that announce nothing get: time-outs, retentions
	// and the retry policy.
	Defaults metadata.Defaults
	// ConcurrentInvocations bounds the attempts of the node that are open at a time; the
	// rest wait, and services share the slots. 0 is no bound.
	ConcurrentInvocations int
	// ServiceInvocations bounds those of them that one service may have. 0 is no bound.
	ServiceInvocations int
	// NoResponseWarning is the time without a response head after which an attempt is
	// marked, logged and counted; it goes on. 0: never.
	NoResponseWarning time.Duration
	// MessageSizeLimit is the size in bytes from which a message of an endpoint is
	// refused (RT0003).
	MessageSizeLimit int
	// MessageSizeWarning is the size in bytes from which a message is logged.
	MessageSizeWarning int
	// EagerStateLimit is how many bytes of an object's state are sent with an
	// attempt's start; 0: none.
	EagerStateLimit int
	// MemoryLimit is how many bytes of payloads all attempts together may hold, on
	// their way to endpoints and from them into the log; beyond it they wait. 0 is no
	// limit. Copies and what surrounds payloads come to about twice that again.
	MemoryLimit int
	// InvocationMemoryLimit is how many of those bytes one attempt may hold; beyond
	// it the attempt fails (RT0001). 0 is no limit.
	InvocationMemoryLimit int
	// MaxAwaitDepth is how deep the futures that a handler waits for may be nested
	// (RT0025); 0: as deep as the journal takes.
	MaxAwaitDepth int
	// EnableV7 lets attempts use version 7 of the service protocol.
	EnableV7 bool
	// FlowControl lets handlers give their calls a scope and a limit key.
	FlowControl bool
	// AdditionalHeaders go with every request to an endpoint. Those of a deployment
	// win over them.
	AdditionalHeaders map[string]string
	// Identity signs the requests; nil leaves them unsigned.
	Identity *identity.Signer
	// Random makes the unique parts of ids; nil is the runtime's generator.
	Random func() uint64
	// Endpoint are the settings of connections.
	Endpoint endpoint.Config
	// Open replaces HTTP as the way to endpoints, for tests that simulate them; nil: it
	// is not replaced.
	Open func(endpoint.Receiver) Stream
}

// DefaultConfig is what a server has that nobody configured.
func DefaultConfig() Config {
	return Config{
		Defaults:              metadata.StandardDefaults(),
		ConcurrentInvocations: 1000,
		NoResponseWarning:     30 * time.Second,
		MessageSizeLimit:      32 << 20,
		MessageSizeWarning:    10 << 20,
		EagerStateLimit:       32 << 20,
		MemoryLimit:           512 << 20,
		InvocationMemoryLimit: 256 << 20,
		Random:                rand.Uint64,
		Endpoint:              endpoint.DefaultConfig(),
	}
}
