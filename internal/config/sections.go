package config

import (
	"time"

	"platform/internal/units"
)

// RetryPolicy says how failed attempts of an invocation are repeated when its
// service does not say so itself.
type RetryPolicy struct {
	InitialInterval      units.Duration `key:"initial-interval" help:"pause before the first retry"`
	ExponentiationFactor float64        `key:"exponentiation-factor" help:"growth of the pause from retry to retry, at least 1"`
	MaxAttempts          Limit          `key:"max-attempts" help:"attempts before on-max-attempts, or unlimited"`
	MaxInterval          units.Duration `key:"max-interval" help:"longest pause"`
	OnMaxAttempts        OnMaxAttempts  `key:"on-max-attempts" help:"pause or kill"`
}

// MetadataClient says where an existing cluster is found.
type MetadataClient struct {
	Addresses []string `key:"addresses" help:"addresses of nodes of the cluster, to join it through; this node may be among them"`
}

// Networking is about traffic between nodes.
type Networking struct {
	ConnectTimeout         units.Duration `key:"connect-timeout" help:"time to connect to another node"`
	BodyMemoryLimit        units.ByteSize `key:"body-memory-limit" help:"memory of this node for the bodies of requests and replies at all its ports; requests beyond it are answered 503"`
	ConnectionBodyMemory   units.ByteSize `key:"connection-body-memory-limit" help:"part of body-memory-limit that one connection may use"`
	MessageSizeLimit       units.ByteSize `key:"message-size-limit" help:"largest message, at most 48 MiB; other size limits cannot exceed it"`
	GossipKeyFile          string         `key:"gossip-key-file" help:"file with 32 bytes, or their base64 text, that encrypt the gossip between nodes; the same on all nodes"`
	HTTP2KeepAliveInterval units.Duration `key:"http2-keep-alive-interval" help:"silence before a connection is probed"`
	HTTP2KeepAliveTimeout  units.Duration `key:"http2-keep-alive-timeout" help:"time for the answer to a probe"`
}

// Ingress is the listener for calls of handlers.
type Ingress struct {
	Listener
	ConcurrentAPIRequestsLimit Limit          `key:"concurrent-api-requests-limit" help:"requests at a time, more are answered 429"`
	ConnectionsPerAddressLimit Limit          `key:"connections-per-address-limit" help:"open connections of one remote address, more are answered 503 and closed; all addresses together have at most 10,000"`
	RequestSizeLimit           units.ByteSize `key:"request-size-limit" help:"largest request body, larger ones are answered 413"`
	HTTP2MaxConcurrentStreams  int            `key:"http2-max-concurrent-streams" help:"requests at a time on one HTTP/2 connection"`
}

// Admin is the listener for the admin API.
type Admin struct {
	Listener
	ConcurrentAPIRequestsLimit Limit    `key:"concurrent-api-requests-limit" help:"requests at a time, more are answered 429"`
	ConnectionsPerAddressLimit Limit    `key:"connections-per-address-limit" help:"open connections of one remote address, more are answered 503 and closed; all addresses together have at most 2,000"`
	DeploymentRoutingHeaders   []string `key:"deployment-routing-headers" help:"headers whose values tell apart deployments of one address"`

	QueryEngine QueryEngine `key:"query-engine"`
}

// QueryEngine bounds what SQL queries may take.
type QueryEngine struct {
	Timeout     units.Duration `key:"timeout" help:"longest run of a query"`
	MaxRows     int            `key:"max-rows" help:"most rows of an answer"`
	MaxBytes    units.ByteSize `key:"max-bytes" help:"largest answer"`
	Concurrency int            `key:"concurrency" help:"queries at a time, more wait a moment and are then answered 429"`
	MemorySize  units.ByteSize `key:"memory-size" help:"memory for sorting and grouping of all queries"`
}

// Worker is what a node does for its partitions.
type Worker struct {
	MaxCommandBatchSize  int            `key:"max-command-batch-size" help:"most commands in one log entry"`
	MaxCommandBatchBytes units.ByteSize `key:"max-command-batch-bytes" help:"most bytes in one log entry, unless a single command is larger"`
	SnapshotTransferRate units.ByteSize `key:"snapshot-transfer-rate" help:"most bytes of partition state that this node sends to new or late replicas per second"`
	DigestInterval       int            `key:"digest-interval" help:"log entries of a partition between two comparisons of its replicas; 0 compares never"`
	Invoker              Invoker        `key:"invoker"`
}

// Invoker is about running invocations on service endpoints.
type Invoker struct {
	InactivityTimeout units.Duration `key:"inactivity-timeout" help:"silence after which an attempt is asked to suspend"`
	AbortTimeout      units.Duration `key:"abort-timeout" help:"silence after that request until the attempt is cut (RT0001)"`

	NoResponseWarning units.Duration `key:"no-response-warning" help:"time without a response head after which an attempt is marked, logged and counted; it goes on, and 0 never marks one"`

	MessageSizeWarning units.ByteSize `key:"message-size-warning" help:"size from which messages of services are logged"`
	MessageSizeLimit   units.ByteSize `key:"message-size-limit" help:"largest message of a service (RT0003)"`

	ConcurrentInvocationsLimit Limit          `key:"concurrent-invocations-limit" help:"open attempts of this node, shared by all services; one service may have 16/17 of them"`
	PerServiceInvocationsLimit Limit          `key:"concurrent-invocations-limit-per-service" help:"open attempts of this node for one service"`
	EagerStateSizeLimit        units.ByteSize `key:"eager-state-size-limit" help:"most state sent along when an attempt starts; 0 sends none"`
	MemoryLimit                units.ByteSize `key:"memory-limit" help:"payloads that all attempts of this node may hold in memory; beyond it they wait"`
	PerInvocationMemoryLimit   units.ByteSize `key:"per-invocation-memory-limit" help:"payloads that one attempt may hold in memory (RT0001)"`
	MaxAwaitedFutureDepth      int            `key:"max-awaited-future-depth" help:"deepest nesting of awaited futures (RT0025)"`

	ConnectTimeout units.Duration `key:"connect-timeout" help:"time to connect to an endpoint"`
	HTTPProxy      string         `key:"http-proxy" help:"proxy for requests to endpoints, such as http://proxy:3128 (default: variable HTTP_PROXY)"`
	NoProxy        []string       `key:"no-proxy" help:"hosts, .domains, addresses and prefixes reached without the proxy, * for all (default: variable NO_PROXY)"`

	AWSProfile                  string         `key:"aws-profile" help:"profile of the AWS configuration that functions are invoked with"`
	AWSAssumeRoleExternalID     string         `key:"aws-assume-role-external-id" help:"external id told when a role is assumed (default: variable AWS_EXTERNAL_ID)"`
	RequestCompressionThreshold units.ByteSize `key:"request-compression-threshold" help:"size from which requests to functions that take zstd are compressed"`

	HTTP2KeepAliveInterval           units.Duration `key:"http2-keep-alive-interval" help:"silence before a connection is probed"`
	HTTP2KeepAliveTimeout            units.Duration `key:"http2-keep-alive-timeout" help:"time for the answer to a probe"`
	HTTP2StreamsPerConnectionLimit   int            `key:"http2-streams-per-connection-limit" help:"attempts at a time on one connection"`
	HTTP2IdleConnectionTimeout       units.Duration `key:"http2-idle-connection-timeout" help:"how long an idle connection stays open"`
	HTTP2InitialStreamWindowSize     units.ByteSize `key:"http2-initial-stream-window-size" help:"receive window of an attempt"`
	HTTP2InitialConnectionWindowSize units.ByteSize `key:"http2-initial-connection-window-size" help:"receive window of a connection"`
	HTTP2MaxFrameSize                units.ByteSize `key:"http2-max-frame-size" help:"largest HTTP/2 frame, 16 KiB to 16 MiB"`

	AdditionalRequestHeaders         map[string]string `key:"additional-request-headers" help:"headers of every request to an endpoint (default: x-platform-cluster-name)"`
	RequestIdentityPrivateKeyPEMFile string            `key:"request-identity-private-key-pem-file" help:"Ed25519 key that signs requests to endpoints"`
	RequestIdentityExpiration        units.Duration    `key:"request-identity-expiration" help:"validity of a signature"`
}

func defaultNetworking() Networking {
	return Networking{
		ConnectTimeout:         seconds(3),
		BodyMemoryLimit:        256 * units.MiB,
		ConnectionBodyMemory:   64 * units.MiB,
		MessageSizeLimit:       32 * units.MiB,
		HTTP2KeepAliveInterval: seconds(1),
		HTTP2KeepAliveTimeout:  seconds(3),
	}
}

func defaultQueryEngine() QueryEngine {
	return QueryEngine{
		Timeout: seconds(30), MaxRows: 100_000, MaxBytes: 64 * units.MiB, Concurrency: 4, MemorySize: 256 * units.MiB,
	}
}

func defaultWorker() Worker {
	return Worker{
		MaxCommandBatchSize:  256,
		MaxCommandBatchBytes: 256 * units.KiB,
		SnapshotTransferRate: 32 * units.MiB,
		DigestInterval:       4096,
		Invoker: Invoker{
			InactivityTimeout:                minutes(1),
			AbortTimeout:                     minutes(10),
			NoResponseWarning:                seconds(30),
			MessageSizeWarning:               10 * units.MiB,
			ConcurrentInvocationsLimit:       1000,
			EagerStateSizeLimit:              32 * units.MiB,
			MemoryLimit:                      512 * units.MiB,
			PerInvocationMemoryLimit:         256 * units.MiB,
			MaxAwaitedFutureDepth:            1000,
			ConnectTimeout:                   seconds(10),
			RequestCompressionThreshold:      4 * units.MiB,
			HTTP2KeepAliveInterval:           seconds(40),
			HTTP2KeepAliveTimeout:            seconds(20),
			HTTP2StreamsPerConnectionLimit:   128,
			HTTP2IdleConnectionTimeout:       minutes(5),
			HTTP2InitialStreamWindowSize:     2 * units.MiB,
			HTTP2InitialConnectionWindowSize: 5 * units.MiB,
			HTTP2MaxFrameSize:                16 * units.KiB,
			RequestIdentityExpiration:        minutes(1),
		},
	}
}

func milliseconds(n int) units.Duration { return units.Duration(time.Duration(n) * time.Millisecond) }
func seconds(n int) units.Duration      { return units.Duration(time.Duration(n) * time.Second) }
func minutes(n int) units.Duration      { return units.Duration(time.Duration(n) * time.Minute) }
