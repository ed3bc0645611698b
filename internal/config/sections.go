package config

import (
	"time"

	"platform/internal/tokenbucket"
	"platform/internal/units"
)

// RetryPolicy is the retry policy of services that set none.
type RetryPolicy struct {
	InitialInterval      units.Duration `key:"initial-interval" help:"delay before the first retry; no retry follows sooner than after 10 ms"`
	ExponentiationFactor float64        `key:"exponentiation-factor" help:"factor by which the delay grows with each retry, at least 1"`
	MaxAttempts          Limit          `key:"max-attempts" help:"attempts before on-max-attempts, or unlimited"`
	MaxInterval          units.Duration `key:"max-interval" help:"maximum delay"`
	OnMaxAttempts        OnMaxAttempts  `key:"on-max-attempts" help:"what happens to an invocation after its last attempt: pause or kill"`
}

// MetadataClient has the addresses of an existing cluster.
type MetadataClient struct {
	Addresses []string `key:"addresses" help:"addresses of nodes of the cluster, for joining it; may include this node"`
}

// Tracing configures the sampling and export of spans.
type Tracing struct {
	Endpoint   string            `key:"tracing-endpoint" help:"collector that gets OpenTelemetry spans: http or https for OTLP over gRPC (http://localhost:4317), otlp+http or otlp+https for OTLP over HTTP (otlp+http://localhost:4318) (default: variables OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_PROTOCOL)"`
	Headers    map[string]string `key:"tracing-headers" help:"headers of requests to the collector"`
	Ratio      *Ratio            `key:"tracing-sampling-ratio" help:"fraction of the traces that begin at this cluster to record, 0 to 1; the traces of callers are recorded if the callers record them (default: variables OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG, otherwise 1)"`
	KeepFailed bool              `key:"tracing-keep-failed" help:"record failed invocations and attempts of other traces, too"`
	KeepSlow   units.Duration    `key:"tracing-keep-slow" help:"record invocations of other traces, too, that take at least this long; 0 disables this"`
}

// JWT configures the tokens of an identity provider that are accepted.
type JWT struct {
	Issuer       string            `key:"issuer" help:"URL of the identity provider whose tokens (JSON web tokens) are accepted; empty for none"`
	Audience     string            `key:"audience" help:"value of the claim aud that tokens must have"`
	KeysURL      string            `key:"keys-url" help:"URL of the keys of the issuer (default: the one in its discovery document)"`
	SubjectClaim string            `key:"subject-claim" help:"claim that names the client"`
	RolesClaim   string            `key:"roles-claim" help:"claim whose values determine the roles, such as groups or realm_access.roles; several are separated by commas"`
	Roles        map[string]string `key:"roles" help:"roles for values of roles-claim, separated by commas; tokens without such a value permit nothing"`
}

// OIDC configures the logins of users with an identity provider.
type OIDC struct {
	Issuer          string            `key:"issuer" help:"URL of the OpenID Connect provider at which users log in; empty for none"`
	ClientID        string            `key:"client-id" help:"client of the web UI, as registered at the provider with the redirect URI <external-url>/login/callback"`
	ClientSecret    string            `key:"client-secret" help:"secret of client-id, as env:NAME or file:/path; empty for a public client"`
	CLIClientID     string            `key:"cli-client-id" help:"public client of the command line, registered for the device flow; empty: the command line cannot log in with the provider"`
	ExternalURL     string            `key:"external-url" help:"address of the admin API in the browsers of users, such as https://platform.example.com; http:// only with localhost"`
	Scopes          []string          `key:"scopes" help:"scopes to request in addition to openid, such as groups"`
	SubjectClaim    string            `key:"subject-claim" help:"claim that names the user"`
	RolesClaim      string            `key:"roles-claim" help:"claim of the ID token whose values determine the roles, such as groups or realm_access.roles; several are separated by commas"`
	Roles           map[string]string `key:"roles" help:"roles for values of roles-claim, separated by commas; users without such a value cannot log in"`
	SessionLifetime units.Duration    `key:"session-lifetime" help:"time after which users have to log in again"`
}

// Networking configures the traffic between nodes.
type Networking struct {
	ConnectTimeout         units.Duration `key:"connect-timeout" help:"timeout of connecting to another node"`
	BodyMemoryLimit        units.ByteSize `key:"body-memory-limit" help:"memory of this node for the bodies of requests and responses at all its ports; requests beyond it get status 503"`
	ConnectionBodyMemory   units.ByteSize `key:"connection-body-memory-limit" help:"part of body-memory-limit that one connection may use"`
	MessageSizeLimit       units.ByteSize `key:"message-size-limit" help:"maximum size of a message, at most 48 MiB; other size limits cannot exceed it"`
	GossipKeyFile          string         `key:"gossip-key-file" help:"file with 32 bytes, or their base64 text, that encrypt the gossip between nodes; the same on all nodes"`
	HTTP2KeepAliveInterval units.Duration `key:"http2-keep-alive-interval" help:"time without traffic after which a connection is probed"`
	HTTP2KeepAliveTimeout  units.Duration `key:"http2-keep-alive-timeout" help:"timeout of a probe"`
}

// Ingress is the listener for calls of handlers.
type Ingress struct {
	Listener
	ConcurrentAPIRequestsLimit Limit          `key:"concurrent-api-requests-limit" help:"maximum number of concurrent requests, of which one principal, or one address without credentials, leaves an eighth to others; further ones get status 429"`
	ConnectionsPerAddressLimit Limit          `key:"connections-per-address-limit" help:"open connections of one remote address, or of one /64 network of IPv6; further ones get status 503 and are closed; all addresses together can have 10,000"`
	RequestSizeLimit           units.ByteSize `key:"request-size-limit" help:"maximum size of a request body; larger ones get status 413 (default: networking.message-size-limit)"`
	PrincipalRequests          Limit          `key:"principal-requests-per-second" help:"requests of one principal, or of one address without credentials, per second and node; bursts of the requests of ten seconds are permitted, further ones get status 429"`
	PrincipalBytes             units.ByteSize `key:"principal-bytes-per-second" help:"the same for the bytes of request bodies; 0 for no limit"`
	HTTP2MaxConcurrentStreams  int            `key:"http2-max-concurrent-streams" help:"concurrent requests on one HTTP/2 connection"`
	ForwardHeaders             []string       `key:"forward-headers" help:"headers with credentials of callers, such as authorization, cookie or x-api-key, that handlers get; they are stored and shown with the invocation; others are dropped"`
	Auth                       IngressAuth    `key:"auth" help:"what callers of handlers must present: none or token; security.mode = strict implies token"`
	TrustedProxies             []string       `key:"trusted-proxies" help:"addresses or prefixes (10.0.0.0/8) of proxies and load balancers, whose header X-Forwarded-For names the client of a request: limits of one address then apply to clients instead of the proxy"`
	AllowedHosts               []string       `key:"allowed-hosts" help:"names to which requests may be sent while the listener is bound to a loopback address, in addition to addresses, localhost and names that only private name servers resolve; * for all"`
	KafkaClusters              KafkaClusters  `key:"kafka-clusters" help:"Kafka clusters that event subscriptions read from, as tables with name, brokers and properties of Kafka clients; others are added with POST /kafka-clusters"`
	AllowedOrigins             []string       `key:"allowed-origins" help:"origins whose web pages may call handlers, such as https://app.example.com; * for all, without credentials (default: pages of this machine if bound to a loopback address, else all)"`

	TLS ListenerTLS `key:"tls"`
}

// Admin is the listener for the admin API.
type Admin struct {
	Listener
	ConcurrentAPIRequestsLimit Limit    `key:"concurrent-api-requests-limit" help:"maximum number of concurrent requests, of which one principal, or one address without credentials, leaves an eighth to others; further ones get status 429"`
	ConnectionsPerAddressLimit Limit    `key:"connections-per-address-limit" help:"open connections of one remote address, or of one /64 network of IPv6; further ones get status 503 and are closed; all addresses together can have 2,000"`
	DeploymentsLimit           Limit    `key:"deployments-limit" help:"number of deployments; further ones get status 429 until some are removed (META0021)"`
	ServicesPerDeployment      Limit    `key:"services-per-deployment-limit" help:"services of one deployment; a registration with more gets status 413 (META0021)"`
	SubscriptionsLimit         int      `key:"subscriptions-limit" help:"number of event subscriptions, at most 1,000; further ones get status 429 (META0021)"`
	KafkaClustersLimit         int      `key:"kafka-clusters-limit" help:"number of Kafka clusters that were added with POST /kafka-clusters, at most 100; further ones get status 429 (META0021)"`
	DeploymentRoutingHeaders   []string `key:"deployment-routing-headers" help:"headers whose values distinguish deployments at the same address"`
	DisableWebUI               bool     `key:"disable-web-ui" help:"do not serve the web UI"`
	TrustedProxies             []string `key:"trusted-proxies" help:"addresses or prefixes (10.0.0.0/8) of proxies and load balancers, whose header X-Forwarded-For names the client of a request: limits of one address then apply to clients instead of the proxy, and the audit log contains the client"`
	AllowedHosts               []string `key:"allowed-hosts" help:"names to which requests without a token may be sent, in addition to addresses, localhost and names that only private name servers resolve; * for all"`
	AllowedOrigins             []string `key:"allowed-origins" help:"origins whose web pages may send requests that change something, such as https://ops.example.com; the web UI does not need it"`

	ListingMemory units.ByteSize `key:"listing-memory" help:"memory of the indexes of invocations behind lists and counts, which exist while clients read these; about 90 bytes per invocation of the partitions that the node leads; if it does not suffice, the oldest completed invocations are left out"`

	QueryEngine QueryEngine `key:"query-engine"`
	TLS         ListenerTLS `key:"tls"`
}

// QueryEngine limits the resources of SQL queries.
type QueryEngine struct {
	Timeout     units.Duration `key:"timeout" help:"timeout of a query"`
	MaxRows     int            `key:"max-rows" help:"maximum number of rows of a result"`
	MaxBytes    units.ByteSize `key:"max-bytes" help:"maximum size of a result"`
	Concurrency int            `key:"concurrency" help:"concurrent queries; further ones wait briefly and then get status 429"`
	MemorySize  units.ByteSize `key:"memory-size" help:"memory of all queries for sorting and grouping"`

	RateLimiting Throttling `key:"rate-limiting" help:"token bucket for SQL queries (POST /query) on this node; further queries get status 429 with Retry-After. The last eighth of the capacity is reserved for clients that have not sent a query recently."`
}

// Throttling is a token bucket.
type Throttling struct {
	Rate     Rate    `key:"rate" help:"tokens that are added per second, minute or hour, such as 100/s, 6000/min or 50/h; unlimited for no limit"`
	Capacity *Tokens `key:"capacity" help:"size of the bucket: the largest burst, in tokens (default: the number in rate)"`
}

// Tokens returns the rate of the bucket.
func (t Throttling) Tokens() tokenbucket.Rate {
	r := tokenbucket.Rate{Count: t.Rate.Count, Period: t.Rate.Per, Capacity: t.Rate.Count}
	if t.Capacity != nil && r.Limited() {
		r.Capacity = int(*t.Capacity)
	}
	return r
}

// Worker configures the partitions of a node.
type Worker struct {
	MaxCommandBatchSize  int            `key:"max-command-batch-size" help:"maximum number of commands in a log entry"`
	MaxCommandBatchBytes units.ByteSize `key:"max-command-batch-bytes" help:"maximum size of a log entry, unless a single command is larger"`
	SnapshotTransferRate units.ByteSize `key:"snapshot-transfer-rate" help:"bytes per second of partition state that this node sends to new or lagging replicas"`
	DigestInterval       int            `key:"digest-interval" help:"log entries of a partition between comparisons of its replicas; 0 disables them"`
	Invoker              Invoker        `key:"invoker"`
}

// Egress restricts the addresses that the server connects to on behalf of users, after name
// resolution.
type Egress struct {
	Allow     []string `key:"allow" help:"addresses, prefixes (10.0.0.0/8) and names (*.svc.example) of endpoints; if empty, all except link-local, multicast and metadata addresses, which cannot be allowed, and ports of this server"`
	Deny      []string `key:"deny" help:"addresses, prefixes and names that are refused, even if allow contains them"`
	Functions []string `key:"functions" help:"patterns of the ARNs of functions that may be invoked, with * for any characters; if empty, all"`
	Roles     []string `key:"roles" help:"patterns of the ARNs of roles that may be assumed to invoke functions; if empty, all"`
}

// Invoker configures the attempts of invocations on service endpoints.
type Invoker struct {
	InactivityTimeout units.Duration `key:"inactivity-timeout" help:"time without messages after which an attempt is asked to suspend"`
	AbortTimeout      units.Duration `key:"abort-timeout" help:"time without messages after that request until the attempt is aborted (RT0001)"`

	NoResponseWarning units.Duration `key:"no-response-warning" help:"time without response headers after which an attempt is reported as silent in logs, metrics and explain; it continues; 0 disables this"`

	MessageSizeWarning units.ByteSize `key:"message-size-warning" help:"size from which messages of services are logged"`
	MessageSizeLimit   units.ByteSize `key:"message-size-limit" help:"maximum size of a message of a service (RT0003) (default: networking.message-size-limit)"`

	ConcurrentInvocationsLimit Limit          `key:"concurrent-invocations-limit" help:"open attempts of this node, shared by all services; one service may have 16/17 of them"`
	PerServiceInvocationsLimit Limit          `key:"concurrent-invocations-limit-per-service" help:"open attempts of this node for one service"`
	EagerStateSizeLimit        units.ByteSize `key:"eager-state-size-limit" help:"maximum size of the state sent when an attempt starts; 0 sends none"`
	ObjectStateSizeLimit       units.ByteSize `key:"object-state-size-limit" help:"maximum size of an object's state: its keys and values, and 64 bytes for each entry; an invocation that would exceed it pauses (RT0027); 0 for no limit"`
	MemoryLimit                units.ByteSize `key:"memory-limit" help:"memory for the payloads of all attempts of this node; attempts beyond it wait"`
	PerInvocationMemoryLimit   units.ByteSize `key:"per-invocation-memory-limit" help:"memory for the payloads of one attempt (RT0001)"`
	MaxAwaitedFutureDepth      int            `key:"max-awaited-future-depth" help:"maximum nesting of awaited futures (RT0025)"`

	ConnectTimeout units.Duration `key:"connect-timeout" help:"timeout of connecting to an endpoint"`
	HTTPProxy      string         `key:"http-proxy" help:"proxy for requests to endpoints, such as http://proxy:3128 (default: variable HTTP_PROXY)"`
	NoProxy        []string       `key:"no-proxy" help:"hosts, .domains, addresses and prefixes reached without the proxy, * for all (default: variable NO_PROXY)"`

	AWSProfile                  string         `key:"aws-profile" help:"profile of the AWS configuration that functions are invoked with"`
	AWSAssumeRoleExternalID     string         `key:"aws-assume-role-external-id" help:"external id for assuming roles (default: variable AWS_EXTERNAL_ID)"`
	RequestCompressionThreshold units.ByteSize `key:"request-compression-threshold" help:"size from which requests to functions that support zstd are compressed"`

	HTTP2KeepAliveInterval           units.Duration `key:"http2-keep-alive-interval" help:"time without traffic after which a connection is probed; 0 disables this"`
	HTTP2KeepAliveTimeout            units.Duration `key:"http2-keep-alive-timeout" help:"timeout of a probe; 0 disables probes"`
	HTTP2StreamsPerConnectionLimit   int            `key:"http2-streams-per-connection-limit" help:"concurrent attempts on one connection"`
	HTTP2IdleConnectionTimeout       units.Duration `key:"http2-idle-connection-timeout" help:"how long an idle connection stays open at most"`
	HTTP2InitialStreamWindowSize     units.ByteSize `key:"http2-initial-stream-window-size" help:"receive window of an attempt, at most 4 MiB: what an endpoint may send before it is read, in addition to memory-limit"`
	HTTP2InitialConnectionWindowSize units.ByteSize `key:"http2-initial-connection-window-size" help:"receive window of a connection, at least that of all its attempts"`
	HTTP2MaxFrameSize                units.ByteSize `key:"http2-max-frame-size" help:"maximum size of an HTTP/2 frame, 16 KiB to 16 MiB"`

	AdditionalRequestHeaders         map[string]string `key:"additional-request-headers" help:"headers of every request to an endpoint (default: x-platform-cluster-name)"`
	RequestIdentityPrivateKeyPEMFile string            `key:"request-identity-private-key-pem-file" help:"Ed25519 key that signs requests to endpoints"`
	RequestIdentityExpiration        units.Duration    `key:"request-identity-expiration" help:"validity of a signature"`

	InvocationThrottling Throttling `key:"invocation-throttling" help:"how many attempts may start on this node, each for one token, also those of resumed and retried invocations; others wait, and services take turns. It does not replace rates of rules, which hold in the whole cluster."`
	ActionThrottling     Throttling `key:"action-throttling" help:"how many actions handlers may take on this node: each journal command (call, send, run, sleep, state …) uses a token. A handler that gets none is not read any further until there is one, and services take turns."`
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
			ObjectStateSizeLimit:             64 * units.MiB,
			MemoryLimit:                      512 * units.MiB,
			PerInvocationMemoryLimit:         256 * units.MiB,
			MaxAwaitedFutureDepth:            1000,
			ConnectTimeout:                   seconds(10),
			RequestCompressionThreshold:      4 * units.MiB,
			HTTP2KeepAliveInterval:           seconds(40),
			HTTP2KeepAliveTimeout:            seconds(20),
			HTTP2StreamsPerConnectionLimit:   128,
			HTTP2IdleConnectionTimeout:       minutes(5),
			HTTP2InitialStreamWindowSize:     256 * units.KiB,
			HTTP2InitialConnectionWindowSize: 32 * units.MiB,
			HTTP2MaxFrameSize:                16 * units.KiB,
			RequestIdentityExpiration:        minutes(1),
		},
	}
}

func milliseconds(n int) units.Duration { return units.Duration(time.Duration(n) * time.Millisecond) }
func seconds(n int) units.Duration      { return units.Duration(time.Duration(n) * time.Second) }
func minutes(n int) units.Duration      { return units.Duration(time.Duration(n) * time.Minute) }
