package subscription

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"platform/internal/errcode"
	"platform/internal/suggest"
)

// use is how a property of librdkafka is treated.
type use uint8

const (
	used    use = iota // it configures the client
	ignored            // accepted with a notice; here something else applies
	refused            // it requests something that does not exist here
)

// property describes a property of Kafka clients.
type property struct {
	use  use
	why  string // what applies instead, or why it is refused
	form func(value string) error
}

// properties are the properties of librdkafka that concern consumers, and two of Java clients
// that are often found beside them.
var properties = map[string]property{}

func define(u use, why string, form func(string) error, names ...string) {
	for _, n := range names {
		properties[n] = property{u, why, form}
	}
}

func init() { //nolint:gochecknoinits // a table
	const (
		noGroup  = "topic partitions are assigned by the server, without a consumer group"
		position = "positions are stored by the server, and committed for the group every few seconds"
		metrics  = "the server has metrics of its own: platform_subscription_…"
		memory   = "memory is bounded by max_in_flight and the memory limits of the server"
		tuned    = "connections have fixed settings"
		logs     = "the server has a log of its own"
		callback = "it is a function of a program, not a setting"
		producer = "it is a property of producers"
	)
	define(used, "", brokers, "bootstrap.servers", "metadata.broker.list")
	define(used, "", shownName(256), "client.id", "client.rack")
	define(used, "", shownName(1000), "group.id")
	define(used, "", oneOf("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"), "security.protocol")
	define(used, "", oneOf("plain", "scram-sha-256", "scram-sha-512", "oauthbearer"), "sasl.mechanism", "sasl.mechanisms")
	define(used, "", text, "sasl.username", "sasl.password",
		"sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.secret",
		"sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.scope", "sasl.oauthbearer.extensions")
	define(used, "", oneOf("oidc"), "sasl.oauthbearer.method")
	define(used, "", httpURL, "sasl.oauthbearer.token.endpoint.url")
	define(used, "", oneOf("client_credentials"), "sasl.oauthbearer.grant.type")
	define(used, "", text, "ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.key.password", "https.ca.location")
	define(used, "", certificates, "ssl.ca.pem", "ssl.certificate.pem", "https.ca.pem")
	define(used, "", privateKey, "ssl.key.pem")
	define(used, "", oneOf("true", "false"), "enable.ssl.certificate.verification")
	define(used, "", oneOf("https", "none", ""), "ssl.endpoint.identification.algorithm")
	define(used, "", oneOf("smallest", "earliest", "beginning", "largest", "latest", "end"), "auto.offset.reset")
	define(used, "", oneOf("read_committed", "read_uncommitted"), "isolation.level")
	define(used, "", number(0, 300_000), "fetch.wait.max.ms")
	define(used, "", number(1, 100_000_000), "fetch.min.bytes")
	define(used, "", number(0, 2147483135), "fetch.max.bytes")
	define(used, "", number(1, 1_000_000_000), "max.partition.fetch.bytes", "fetch.message.max.bytes")
	define(used, "", number(10, 300_000), "socket.timeout.ms")
	define(used, "", number(1000, 2147483647), "socket.connection.setup.timeout.ms")
	define(used, "", number(0, 2147483647), "connections.max.idle.ms")
	define(used, "", number(-1, 3_600_000), "topic.metadata.refresh.interval.ms")
	define(used, "", number(1, 86_400_000), "metadata.max.age.ms")
	define(used, "", number(1, 300_000), "retry.backoff.ms", "retry.backoff.max.ms")

	define(ignored, noGroup, nil, "session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms", "partition.assignment.strategy",
		"group.protocol", "group.protocol.type", "group.remote.assignor", "group.instance.id", "coordinator.query.interval.ms")
	define(ignored, position, nil, "enable.auto.commit", "auto.commit.enable", "auto.commit.interval.ms", "enable.auto.offset.store",
		"offset.store.method", "offset.store.path", "offset.store.sync.interval.ms")
	define(ignored, metrics, nil, "statistics.interval.ms", "enable.metrics.push")
	define(ignored, memory, nil, "queued.min.messages", "queued.max.messages.kbytes", "receive.message.max.bytes", "message.max.bytes",
		"message.copy.max.bytes", "fetch.queue.backoff.ms", "fetch.error.backoff.ms", "consume.callback.max.messages")
	define(ignored, tuned, nil, "max.in.flight.requests.per.connection", "max.in.flight", "socket.keepalive.enable", "socket.nagle.disable",
		"socket.max.fails", "socket.blocking.max.ms", "socket.send.buffer.bytes", "socket.receive.buffer.bytes", "broker.address.ttl",
		"broker.address.family", "reconnect.backoff.jitter.ms", "reconnect.backoff.ms", "reconnect.backoff.max.ms", "client.dns.lookup",
		"metadata.recovery.strategy", "metadata.recovery.rebootstrap.trigger.ms", "topic.metadata.refresh.fast.interval.ms",
		"topic.metadata.refresh.fast.cnt", "topic.metadata.refresh.sparse", "topic.metadata.propagation.max.ms", "api.version.request",
		"api.version.request.timeout.ms", "api.version.fallback.ms", "broker.version.fallback", "builtin.features", "enable.random.seed",
		"internal.termination.signal", "allow.auto.create.topics", "enable.partition.eof")
	define(ignored, "checksums are always verified", nil, "check.crcs")
	define(ignored, logs, nil, "debug", "log_level", "log.queue", "log.thread.name", "log.connection.close", "enabled_events")

	define(refused, callback, nil, "error_cb", "throttle_cb", "stats_cb", "log_cb", "background_event_cb", "socket_cb", "connect_cb",
		"closesocket_cb", "open_cb", "resolve_cb", "opaque", "default_topic_conf", "consume_cb", "rebalance_cb", "offset_commit_cb",
		"oauthbearer_token_refresh_cb", "ssl.certificate.verify_cb", "ssl_engine_callback_data", "ssl_key", "ssl_certificate", "ssl_ca",
		"interceptors", "plugin.library.paths")
	define(refused, "give certificates and keys in PEM: ssl.ca.location, ssl.certificate.location, ssl.key.location, or the …pem properties", nil,
		"ssl.keystore.location", "ssl.keystore.password", "ssl.truststore.location", "ssl.truststore.password", "ssl.ca.certificate.stores",
		"ssl.providers", "ssl.engine.location", "ssl.engine.id")
	define(refused, "TLS uses the algorithms of the Go standard library", nil, "ssl.cipher.suites", "ssl.curves.list", "ssl.sigalgs.list", "ssl.crl.location")
	define(refused, "Kerberos is not supported; use PLAIN, SCRAM, OAUTHBEARER or client certificates", nil, "sasl.kerberos.service.name",
		"sasl.kerberos.principal", "sasl.kerberos.kinit.cmd", "sasl.kerberos.keytab", "sasl.kerberos.min.time.before.relogin")
	define(refused, "tokens come from an endpoint: set sasl.oauthbearer.method to oidc, sasl.oauthbearer.token.endpoint.url, …client.id and …client.secret", nil,
		"sasl.oauthbearer.config", "enable.sasl.oauthbearer.unsecure.jwt", "sasl.oauthbearer.assertion.algorithm",
		"sasl.oauthbearer.assertion.private.key.file", "sasl.oauthbearer.assertion.private.key.passphrase",
		"sasl.oauthbearer.assertion.private.key.pem", "sasl.oauthbearer.assertion.file", "sasl.oauthbearer.assertion.claim.aud",
		"sasl.oauthbearer.assertion.claim.exp.seconds", "sasl.oauthbearer.assertion.claim.iss", "sasl.oauthbearer.assertion.claim.jti.include",
		"sasl.oauthbearer.assertion.claim.nbf.seconds", "sasl.oauthbearer.assertion.claim.sub", "sasl.oauthbearer.assertion.jwt.template.file",
		"sasl.oauthbearer.metadata.authentication.type")
	define(refused, "write sasl.username and sasl.password", nil, "sasl.jaas.config")
	define(refused, "use a pattern as the source", nil, "topic.blacklist")
	define(refused, producer, nil, "transactional.id", "transaction.timeout.ms", "enable.idempotence", "enable.gapless.guarantee",
		"queue.buffering.max.messages", "queue.buffering.max.kbytes", "queue.buffering.max.ms", "linger.ms", "message.send.max.retries", "retries",
		"queue.buffering.backpressure.threshold", "compression.codec", "compression.type", "compression.level", "batch.num.messages", "batch.size",
		"delivery.report.only.error", "dr_cb", "dr_msg_cb", "sticky.partitioning.linger.ms", "request.required.acks", "acks", "request.timeout.ms",
		"message.timeout.ms", "delivery.timeout.ms", "queuing.strategy", "produce.offset.report", "partitioner", "partitioner_cb", "msg_order_cmp")
}

// MaxFetch bounds the records of one fetch, in bytes, unless a single one is larger.
const MaxFetch = 16 << 20

// effective are the values that properties can have here, if these are fewer than for librdkafka.
// Values outside have the effect of the nearest one; those that switch a limit off, that of the largest.
var effective = map[string]struct{ low, high int64 }{
	"fetch.min.bytes": {1, MaxFetch}, "fetch.max.bytes": {1, MaxFetch}, "max.partition.fetch.bytes": {1, MaxFetch}, "fetch.message.max.bytes": {1, MaxFetch},
	"fetch.wait.max.ms": {10, 300_000}, "socket.timeout.ms": {1000, 300_000}, "connections.max.idle.ms": {1000, 900_000},
	"topic.metadata.refresh.interval.ms": {10_000, 3_600_000}, "metadata.max.age.ms": {10_000, 3_600_000},
}

// switchOff are the properties of which values below 1 switch a limit off.
var switchOff = map[string]bool{"connections.max.idle.ms": true, "topic.metadata.refresh.interval.ms": true}

// effectiveValue returns the value that a numeric property has here.
func effectiveValue(name string, value int64) int64 {
	limits, limited := effective[name]
	switch {
	case !limited:
		return value
	case switchOff[name] && value < 1:
		return limits.high
	}
	return min(max(value, limits.low), limits.high)
}

// PropertyNames returns the names of the properties that have an effect, sorted.
func PropertyNames() []string {
	var names []string
	for n, p := range properties {
		if p.use == used {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

// Notices returns one message for each property that has no effect.
func Notices(values map[string]string) []string {
	notices, _ := checkProperties(values, false)
	return notices
}

// checkProperties validates the properties of a cluster, which need addresses of brokers, or of
// a subscription. It returns notices of those without effect.
func checkProperties(values map[string]string, cluster bool) (notices []string, err error) {
	if err := checkSizes(values); err != nil {
		return nil, err
	}
	for _, n := range sortedNames(values) {
		p, known := properties[n]
		switch {
		case !known:
			return nil, unknownProperty(n)
		case p.use == refused:
			return nil, invalid("the property %s is not supported: %s", n, p.why).In(n)
		case p.use == ignored:
			notices = append(notices, fmt.Sprintf("the property %s has no effect: %s", n, p.why))
			continue
		}
		if value, err := strconv.ParseInt(values[n], 10, 64); err == nil && effectiveValue(n, value) != value {
			notices = append(notices, adjusted(n, effectiveValue(n, value)))
		}
		if err := p.form(values[n]); err != nil {
			if Secret(n) {
				return nil, invalid("the value of the property %s is invalid: %v", n, err).In(n)
			}
			if errors.Is(err, errCredentials) {
				return nil, invalid("the property %s: %v", n, err).In(n)
			}
			return nil, invalid("the property %s is %s: %v", n, quote(values[n]), err).In(n)
		}
	}
	if cluster && values["bootstrap.servers"] == "" && values["metadata.broker.list"] == "" {
		return nil, invalid("the properties of a Kafka cluster need bootstrap.servers (or metadata.broker.list): the addresses of brokers, as host:port, separated by commas").In("bootstrap.servers")
	}
	if values["bootstrap.servers"] != "" && values["metadata.broker.list"] != "" {
		return nil, invalid("bootstrap.servers and metadata.broker.list are two names of one property; set one of them").In("bootstrap.servers")
	}
	return notices, nil
}

// adjusted is the notice of a property that has another value here.
func adjusted(name string, value int64) string {
	why := "which is the nearest value that is supported"
	if value == MaxFetch {
		why = "which bounds the memory of the server; larger records are fetched one by one"
	}
	return fmt.Sprintf("the property %s has the effect of %d, %s", name, value, why)
}

// settings are the fields of a subscription that users take for properties.
var settings = []string{"start", "ordering", "on_error", "tombstones", "on_recreate", "headers", "scope", "limit_key", "max_in_flight", "topic_pattern", "dead_letter_topic"}

func unknownProperty(name string) *errcode.Error {
	if field := strings.ReplaceAll(name, "-", "_"); slices.Contains(settings, field) {
		return invalid("%s is a setting of the subscription and not a property of the Kafka client: use --%s, or the field %s",
			name, strings.ReplaceAll(field, "_", "-"), field).In(name)
	}
	names := PropertyNames()
	hint := "."
	if near := suggest.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	return invalid("there is no property %s%s Known properties: %s", quote(name), hint, strings.Join(names, ", ")).In(name)
}

// Secret reports whether the value of a property must not be shown.
func Secret(name string) bool {
	for _, part := range []string{"password", "secret", "passphrase", "key.pem", "token", "credential", "jaas"} {
		if strings.Contains(name, part) {
			return name != "sasl.oauthbearer.token.endpoint.url" && name != "sasl.oauthbearer.client.credentials.client.id"
		}
	}
	return false
}

// Redacted is shown instead of secrets.
const Redacted = "***"

// Redact returns properties for operators to see.
func Redact(values map[string]string) map[string]string {
	out := maps.Clone(values)
	for n := range out {
		if Secret(n) {
			out[n] = Redacted
		}
	}
	return out
}

// Unredact replaces Redacted in edited properties by the current values. It fails if there are
// none.
func Unredact(edited, current map[string]string) (map[string]string, error) {
	out := maps.Clone(edited)
	for _, n := range sortedNames(out) {
		if !Secret(n) || out[n] != Redacted {
			continue
		}
		value, known := current[n]
		if !known {
			return nil, invalid("the property %s is %q, which stands for the current value, but there is none; write the value", n, Redacted).In(n)
		}
		if changed := redirected(current, out); changed != "" && slices.Contains(sentSecrets, n) {
			return nil, invalid("the current value of %s is not kept, because %s changes where it is sent; write the value of %s as well", n, changed, n).In(n)
		}
		out[n] = value
	}
	return out, nil
}

func sortedNames(values map[string]string) []string { return slices.Sorted(maps.Keys(values)) }

func detail(err error) string {
	if coded, ok := err.(*errcode.Error); ok { //nolint:errorlint // made here
		return coded.Message
	}
	return err.Error()
}

func text(value string) error {
	if value == "" {
		return fmt.Errorf("it is empty")
	}
	return nil
}

// shownName returns a form for names, which brokers show.
func shownName(most int) func(string) error {
	return func(value string) error {
		switch {
		case value == "":
			return errors.New("it is empty")
		case len(value) > most:
			return fmt.Errorf("it has %d bytes, at most %d are allowed", len(value), most)
		case strings.ContainsAny(value, "\n\r\t"):
			return errors.New("it has control characters")
		}
		return nil
	}
}

func certificates(value string) error {
	n := 0
	for block, rest := pem.Decode([]byte(value)); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("expected certificates in PEM, not %s", quote(block.Type))
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("certificate %d is malformed: %w", n+1, err)
		}
		n++
	}
	if n == 0 {
		return errors.New("expected certificates in PEM")
	}
	return nil
}

func privateKey(value string) error {
	if block, _ := pem.Decode([]byte(value)); block == nil || !strings.HasSuffix(block.Type, "PRIVATE KEY") {
		return errors.New("expected a private key in PEM")
	}
	return nil
}

func oneOf(values ...string) func(string) error {
	return func(value string) error {
		if !slices.Contains(values, strings.ToLower(value)) {
			return fmt.Errorf("expected one of %s", strings.Join(values, ", "))
		}
		return nil
	}
}

func number(low, high int) func(string) error {
	return func(value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < low || n > high {
			return fmt.Errorf("expected a number from %d to %d", low, high)
		}
		return nil
	}
}
