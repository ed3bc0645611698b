package config

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"platform/internal/egress"
	"platform/internal/limits"
	"platform/internal/subscription"
	"platform/internal/units"
)

var (
	nodeNames  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	frameSizes = [2]units.ByteSize{16 * units.KiB, 16*units.MiB - 1}
)

// validate checks ranges, and relations between values.
func (l *loader) validate() {
	cfg, invoker := l.cfg, &l.cfg.Worker.Invoker
	l.check("node-name", nodeNames.MatchString(cfg.NodeName),
		"1 to 128 letters, digits or _ . - that do not start with . or - (it names a directory)", cfg.NodeName)
	l.check("cluster-name", nodeNames.MatchString(cfg.ClusterName),
		"1 to 128 letters, digits or _ . - that do not start with . or -", cfg.ClusterName)
	l.check("base-dir", cfg.BaseDir != "", "a directory", cfg.BaseDir)
	l.between("default-num-partitions", cfg.DefaultNumPartitions, 1, math.MaxUint16)
	l.between("default-replication", cfg.DefaultReplication, 1, maxReplication)
	l.between("bootstrap-expect", cfg.BootstrapExpect, 1, 100)
	l.check("node-lost-timeout", cfg.NodeLostTimeout.Std() >= time.Second, "a duration from 1s", cfg.NodeLostTimeout)
	l.check("disk-timeout", cfg.DiskTimeout.Std() >= 3*time.Second, "a duration from 3s", cfg.DiskTimeout) // above WatchdogConfig.Slow
	for _, address := range cfg.MetadataClient.Addresses {
		l.check("metadata-client.addresses", isNodeAddress(address), "addresses of nodes such as node1:5122 or http://node1:5122", address)
	}
	l.between("admin.subscriptions-limit", cfg.Admin.SubscriptionsLimit, 1, subscription.MaxSubscriptions)
	l.between("admin.kafka-clusters-limit", cfg.Admin.KafkaClustersLimit, 1, subscription.MaxClusters)
	l.between("ingress.http2-max-concurrent-streams", cfg.Ingress.HTTP2MaxConcurrentStreams, 1, math.MaxInt32)
	l.between("worker.max-command-batch-size", cfg.Worker.MaxCommandBatchSize, 1, math.MaxInt32)
	l.between("worker.digest-interval", cfg.Worker.DigestInterval, 0, math.MaxInt32)
	l.check("worker.snapshot-transfer-rate", cfg.Worker.SnapshotTransferRate >= units.MiB && cfg.Worker.SnapshotTransferRate <= math.MaxInt32,
		"a size from 1 MiB to 2 GiB", cfg.Worker.SnapshotTransferRate)
	l.between("worker.invoker.max-awaited-future-depth", invoker.MaxAwaitedFutureDepth, 1, 1000) // limit of a journal entry
	l.between("worker.invoker.http2-streams-per-connection-limit", invoker.HTTP2StreamsPerConnectionLimit, 1, math.MaxInt32)
	l.check("worker.invoker.http2-max-frame-size",
		invoker.HTTP2MaxFrameSize >= frameSizes[0] && invoker.HTTP2MaxFrameSize <= frameSizes[1],
		"a size from 16 KiB to one byte less than 16 MiB", invoker.HTTP2MaxFrameSize)
	l.check("networking.connection-body-memory-limit", cfg.Networking.ConnectionBodyMemory >= cfg.Networking.MessageSizeLimit,
		"a size not below networking.message-size-limit, "+cfg.Networking.MessageSizeLimit.String(), cfg.Networking.ConnectionBodyMemory)
	l.check("networking.body-memory-limit", cfg.Networking.BodyMemoryLimit >= cfg.Networking.ConnectionBodyMemory,
		"a size not below networking.connection-body-memory-limit, "+cfg.Networking.ConnectionBodyMemory.String(), cfg.Networking.BodyMemoryLimit)
	l.messageSize("networking.message-size-limit", cfg.Networking.MessageSizeLimit)
	l.messageSize("ingress.request-size-limit", cfg.Ingress.RequestSizeLimit)
	l.messageSize("worker.invoker.message-size-limit", invoker.MessageSizeLimit)
	l.check("worker.invoker.memory-limit", invoker.MemoryLimit >= 256*units.KiB, "a size of 256 KiB or more", invoker.MemoryLimit)
	l.check("worker.invoker.per-invocation-memory-limit",
		invoker.PerInvocationMemoryLimit >= 256*units.KiB, "a size of 256 KiB or more", invoker.PerInvocationMemoryLimit)
	l.check("worker.invoker.request-identity-expiration",
		invoker.RequestIdentityExpiration.Std() >= time.Second && invoker.RequestIdentityExpiration.Std() <= units.Day,
		"a duration from 1s to 1d", invoker.RequestIdentityExpiration)
	l.throttling("worker.invoker.invocation-throttling", invoker.InvocationThrottling)
	l.throttling("worker.invoker.action-throttling", invoker.ActionThrottling)
	l.throttling("admin.query-engine.rate-limiting", cfg.Admin.QueryEngine.RateLimiting)
	l.queryEngine(cfg.Admin.ListingMemory, cfg.Admin.QueryEngine)
	l.logFilter(cfg.LogFilter)
	l.proxy(invoker.HTTPProxy)
	l.listenerTLS("ingress.tls.", cfg.Ingress.TLS)
	l.listenerTLS("admin.tls.", cfg.Admin.TLS)
	l.check("security.secrets.keys", cfg.Security.Secrets.Keys == "" || cfg.Security.Secrets.KeyFile == "", "empty together with key-file", hidden)
	l.nodeTLS(cfg.Security.NodeTLS, cfg.Networking.GossipKeyFile)
	l.oidc(cfg.Security.OIDC)
	l.destinations("egress.allow", cfg.Egress.Allow)
	l.destinations("egress.deny", cfg.Egress.Deny)
	l.retryPolicy(cfg.DefaultRetryPolicy)
	l.hiddenValues()
	l.listener("", cfg.Listener)
	l.listener("ingress.", cfg.Ingress.Listener)
	l.listener("admin.", cfg.Admin.Listener)
	l.webOrigins("ingress.allowed-origins", cfg.Ingress.AllowedOrigins, true)
	l.webOrigins("admin.allowed-origins", cfg.Admin.AllowedOrigins, false)
	l.prefixes("ingress.trusted-proxies", cfg.Ingress.TrustedProxies)
	l.prefixes("admin.trusted-proxies", cfg.Admin.TrustedProxies)
}

// hiddenValues rejects values copied from a dump, which hides secrets.
func (l *loader) hiddenValues() {
	for _, path := range secret {
		k := l.byPath[path]
		text, _ := textOf(k.value)
		l.check(path, text != hidden && !strings.Contains(text, `"`+hidden+`"`), "the value itself; *** stands for one that --dump-config hides", hidden)
	}
}

// messageSize checks a limit of what becomes part of a log entry: a larger entry could be written,
// but not sent to the other replicas. Limits below networking.message-size-limit have been capped
// at it by now.
func (l *loader) messageSize(path string, size units.ByteSize) {
	const most = units.ByteSize(limits.Message)
	if path != "networking.message-size-limit" && size > most {
		return // reported for networking.message-size-limit
	}
	l.check(path, size > 0 && size <= most, fmt.Sprintf("a size from 1 byte to %s, the limit of a log entry", most), size)
}

// maxReplication is more than is useful: each write waits for a majority.
const maxReplication = 9

func isNodeAddress(text string) bool {
	host, port, err := net.SplitHostPort(HostPort(text))
	if err != nil || host == "" {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

func (l *loader) retryPolicy(policy RetryPolicy) {
	const prefix = "default-retry-policy."
	l.check(prefix+"initial-interval", policy.InitialInterval > 0, "a duration above 0", policy.InitialInterval)
	l.check(prefix+"exponentiation-factor", policy.ExponentiationFactor >= 1, "a number of at least 1", policy.ExponentiationFactor)
	l.check(prefix+"max-interval", policy.MaxInterval >= policy.InitialInterval,
		"a duration not below initial-interval, "+policy.InitialInterval.String(), policy.MaxInterval)
}

// throttling rejects a capacity without a rate, which would have no effect.
func (l *loader) throttling(section string, t Throttling) {
	if t.Capacity != nil {
		l.check(section+".capacity", t.Rate.Count > 0, "not set while "+section+".rate is unlimited", *t.Capacity)
	}
}

func (l *loader) queryEngine(listing units.ByteSize, engine QueryEngine) {
	l.check("admin.listing-memory", listing >= 8*units.MiB, "a size of 8 MiB or more", listing)
	const prefix = "admin.query-engine."
	l.check(prefix+"timeout", engine.Timeout > 0, "a duration above 0", engine.Timeout)
	l.between(prefix+"max-rows", engine.MaxRows, 1, math.MaxInt32)
	l.check(prefix+"max-bytes", engine.MaxBytes >= units.KiB && engine.MaxBytes <= units.GiB, "a size from 1 KiB to 1 GiB", engine.MaxBytes)
	l.between(prefix+"concurrency", engine.Concurrency, 1, 64)
	l.check(prefix+"memory-size", engine.MemorySize >= 16*units.MiB, "a size of 16 MiB or more", engine.MemorySize)
}

func (l *loader) listener(prefix string, listener Listener) {
	_, err := netip.ParseAddr(listener.BindIP)
	inherited := prefix != "" && !l.isSet(prefix+"bind-ip")
	l.check(prefix+"bind-ip", err == nil || inherited, "an IP address such as 127.0.0.1 or ::", listener.BindIP)
	l.between(prefix+"bind-port", listener.BindPort, 0, math.MaxUint16)
	if listener.BindAddress != "" {
		_, port, err := net.SplitHostPort(listener.BindAddress)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		l.check(prefix+"bind-address", err == nil, "host:port such as 127.0.0.1:8080", listener.BindAddress)
	}
	if listener.AdvertisedAddress != "" {
		address, err := url.Parse(listener.AdvertisedAddress)
		l.check(prefix+"advertised-address", err == nil && address.Scheme != "" && address.Host != "",
			"an address such as http://host:8080/", listener.AdvertisedAddress)
	}
}

// webOrigins checks origins of web pages, which have no path.
func (l *loader) webOrigins(path string, origins []string, anyOrigin bool) {
	for _, origin := range origins {
		u, err := url.Parse(origin)
		l.check(path, anyOrigin && origin == "*" || err == nil && u.Scheme != "" && u.Host != "" && u.Scheme+"://"+u.Host == origin,
			"origins such as https://app.example.com", origin)
	}
}

// logFilter checks the levels; the log interprets the names.
func (l *loader) logFilter(filter string) {
	for part := range strings.SplitSeq(filter, ",") {
		level := strings.ToLower(strings.TrimSpace(part[strings.LastIndexByte(part, '=')+1:]))
		l.check("log-filter", strings.TrimSpace(part) == "" || slices.Contains(LogLevels(), level),
			"levels such as warn,platform=info", filter)
	}
}

func (l *loader) proxy(proxy string) {
	if proxy == "" {
		return
	}
	address, err := url.Parse(proxy)
	fine := err == nil && (address.Scheme == "http" || address.Scheme == "https") && address.Hostname() != "" &&
		strings.Trim(address.Path, "/") == "" && address.RawQuery == ""
	shown := "another text" // it may contain a password
	if err == nil {
		shown = address.Redacted()
	}
	l.check("worker.invoker.http-proxy", fine, "an address such as http://proxy:3128", shown)
}

// destinations checks rules for addresses.
func (l *loader) destinations(path string, list []string) {
	if _, err := egress.ParseRules(list); err != nil {
		l.problem(l.origins[path], path, err.Error())
	}
}

func (l *loader) prefixes(path string, list []string) {
	if _, err := Prefixes(list); err != nil {
		l.problem(l.origins[path], path, err.Error())
	}
}

func (l *loader) between(path string, n, low, high int) {
	l.check(path, n >= low && n <= high, fmt.Sprintf("a whole number from %d to %d", low, high), n)
}

func (l *loader) check(path string, fine bool, want string, got any) {
	known := slices.ContainsFunc(l.problems, func(p problem) bool { return p.path == path })
	if !fine && !known {
		if text, ok := got.(string); ok {
			got = quoted(text)
		}
		l.problem(l.origins[path], path, fmt.Sprintf("expected %s, got %v", want, got))
	}
}
