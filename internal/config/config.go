package config

import (
	"platform/internal/subscription"
	"platform/internal/units"
)

// Config is the effective configuration of one server. Load sets every value, so that readers need
// no defaults; a nil pointer means "none".
//
// The tag "key" is the name in TOML, "help" the one-line description.
type Config struct {
	NodeName      string `key:"node-name" help:"stable, unique name of the node; also its directory below base-dir (default: the host name)"`
	ClusterName   string `key:"cluster-name" help:"name of the cluster; nodes join only the cluster with this name"`
	BaseDir       string `key:"base-dir" help:"base directory of the data"`
	AutoProvision bool   `key:"auto-provision" help:"create a new cluster on the first start"`

	// FeatureLevelHold keeps a downgrade possible. It takes effect if any node sets it.
	FeatureLevelHold bool `key:"feature-level-hold" help:"keep the cluster's feature level after an upgrade, so that servers can be downgraded"`

	// BootstrapExpect nodes that start together with empty directories form one cluster; with 1 a
	// node without metadata-client.addresses creates its own.
	BootstrapExpect int            `key:"bootstrap-expect" help:"number of new nodes that create a cluster together"`
	NodeLostTimeout units.Duration `key:"node-lost-timeout" help:"time without contact after which the replicas of a node are moved to other nodes"`

	// The two defaults apply only when the cluster is provisioned.
	DefaultNumPartitions int `key:"default-num-partitions" help:"partitions of a new cluster, 1 to 65535"`
	DefaultReplication   int `key:"default-replication" help:"replicas of each partition of a new cluster (default: bootstrap-expect, at most 3)"`

	Listener                    // node to node traffic and metrics
	UseRandomPorts    bool      `key:"use-random-ports" help:"listen on free ports chosen by the system"`
	LogFilter         string    `key:"log-filter" help:"log levels, as level or target=level, separated by commas"`
	LogFormat         LogFormat `key:"log-format" help:"format of log records: pretty, compact or json"`
	LogDisableANSI    bool      `key:"log-disable-ansi-codes" help:"disable colours in the log"`
	DisablePrometheus bool      `key:"disable-prometheus" help:"do not collect metrics"`
	MetricsPerHandler bool      `key:"metrics-per-handler" help:"distinguish the handlers of a service in metrics, of up to 1,000 handlers; otherwise only services"`
	EnableProfiles    bool      `key:"enable-profiles" help:"serve profiles of the process at /debug/pprof/ of the admin and node ports; they may contain data of requests; where tokens are required, one with the role admin is"`

	Tracing

	InitializationTimeout units.Duration `key:"initialization-timeout" help:"maximum time to join the cluster at startup"`
	ShutdownTimeout       units.Duration `key:"shutdown-timeout" help:"maximum time for a graceful shutdown"`
	// A write that may still complete cannot be reported as failed, so the process has to end.
	DiskTimeout units.Duration `key:"disk-timeout" help:"how long reads and writes of the data directory may make no progress before the process exits, so that other nodes take over and a supervisor can restart it; leadership is given up after 2s"`

	// Retentions of services that set none, and the bounds of those that set them.
	DefaultJournalRetention            units.Duration  `key:"default-journal-retention" help:"how long journals are kept after completion"`
	MaxJournalRetention                *units.Duration `key:"max-journal-retention" help:"upper bound of journal retentions"`
	DefaultIdempotencyRetention        units.Duration  `key:"default-idempotency-retention" help:"how long results of idempotent calls are kept"`
	MaxIdempotencyRetention            *units.Duration `key:"max-idempotency-retention" help:"upper bound of idempotency retentions"`
	DefaultWorkflowCompletionRetention units.Duration  `key:"default-workflow-completion-retention" help:"how long finished workflows are kept"`
	MaxWorkflowCompletionRetention     *units.Duration `key:"max-workflow-completion-retention" help:"upper bound of workflow retentions"`

	MaxRetryPolicyMaxAttempts Limit `key:"max-retry-policy-max-attempts" help:"upper bound of the attempts in retry policies of services"`

	EnableVQueues    bool `key:"experimental-enable-vqueues" help:"flow control; requires experimental-enable-protocol-v7 and a cluster without open invocations"`
	EnableProtocolV7 bool `key:"experimental-enable-protocol-v7" help:"service protocol 7"`

	DefaultRetryPolicy RetryPolicy    `key:"default-retry-policy"`
	MetadataClient     MetadataClient `key:"metadata-client"`
	Networking         Networking     `key:"networking"`
	Ingress            Ingress        `key:"ingress"`
	Admin              Admin          `key:"admin"`
	Worker             Worker         `key:"worker"`
	Egress             Egress         `key:"egress"`
	Security           Security       `key:"security"`
}

// Default returns the built-in values. Those that depend on others (the node's
// name, limits under the networking limit, inherited addresses) are empty until
// Load completes them.
func Default() *Config {
	return &Config{
		ClusterName:           "localcluster",
		BaseDir:               "platform-data",
		AutoProvision:         true,
		DefaultNumPartitions:  8,
		BootstrapExpect:       1,
		NodeLostTimeout:       minutes(15),
		Listener:              Listener{BindIP: Loopback, BindPort: 5122},
		InitializationTimeout: minutes(5),
		ShutdownTimeout:       minutes(1),
		DiskTimeout:           milliseconds(10_000),
		LogFilter:             "warn,platform=info",
		LogFormat:             LogPretty,
		MetricsPerHandler:     true,
		Tracing:               Tracing{KeepFailed: true},

		DefaultJournalRetention:            units.Duration(units.Day),
		DefaultIdempotencyRetention:        units.Duration(units.Day),
		DefaultWorkflowCompletionRetention: units.Duration(units.Day),

		DefaultRetryPolicy: RetryPolicy{
			InitialInterval:      milliseconds(500),
			ExponentiationFactor: 2,
			MaxAttempts:          70,
			MaxInterval:          minutes(1),
			OnMaxAttempts:        PauseOnMaxAttempts,
		},
		Networking: defaultNetworking(),
		Ingress: Ingress{
			Listener:                  Listener{BindPort: 8080},
			HTTP2MaxConcurrentStreams: 250,

			ConnectionsPerAddressLimit: 5000,
			Auth:                       IngressNone,
		},
		Admin:    Admin{Listener: Listener{BindPort: 9070}, ConnectionsPerAddressLimit: 500, DeploymentsLimit: 10_000, ServicesPerDeployment: 1000, SubscriptionsLimit: subscription.MaxSubscriptions, KafkaClustersLimit: subscription.MaxClusters, ListingMemory: 128 * units.MiB, QueryEngine: defaultQueryEngine()},
		Worker:   defaultWorker(),
		Security: Security{Mode: SecurityDefault, JWT: JWT{SubjectClaim: "sub"}, OIDC: OIDC{SubjectClaim: "sub", SessionLifetime: minutes(8 * 60)}, NodeTLS: NodeTLS{Mode: TLSOff, CertificateValidity: minutes(30 * 24 * 60)}},
	}
}

// FlowControl reports whether flow control is enabled, which requires both settings.
func (c *Config) FlowControl() bool { return c.EnableVQueues && c.EnableProtocolV7 }
