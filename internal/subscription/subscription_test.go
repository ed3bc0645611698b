package subscription

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
)

func requireInvalid(t *testing.T, err error, parts ...string) {
	t.Helper()
	code, _ := errcode.Of(err)
	require.Equal(t, errcode.META0009, code, "%v", err)
	for _, part := range parts {
		require.ErrorContains(t, err, part)
	}
}

func TestSources(t *testing.T) {
	for text, want := range map[string]Source{
		"kafka://main/orders":              {Cluster: "main", Topics: []string{"orders"}},
		"kafka://my-cluster.eu/b,a,b":      {Cluster: "my-cluster.eu", Topics: []string{"a", "b"}},
		"kafka://main?pattern=orders-.%2B": {Cluster: "main", Pattern: "orders-.+"},
		"kafka://main":                     {Cluster: "main"},
	} {
		got, err := ParseSource(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
		again, err := ParseSource(got.String())
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
	for text, part := range map[string]string{
		"":                                   "not of the form kafka://",
		"orders":                             "not of the form kafka://",
		"http://main/orders":                 `has the scheme "http"`,
		"kafka:///orders":                    "names no cluster",
		"kafka://-a/orders":                  "form of a host name",
		"kafka://a b/orders":                 "form of a host name",
		"kafka://main/..":                    "is not the name of a topic",
		"kafka://main/a/b":                   "has a character outside",
		"kafka://main/a,,b":                  "is not the name of a topic",
		"kafka://main/" + long(250):          "at most 249",
		"kafka://main/a\x00b":                "has a character outside",
		"kafka://main?pattern=(":             "not a regular expression",
		"kafka://main?pattern=":              "has the query",
		"kafka://main?topic=a":               "has the query",
		"kafka://main/a?pattern=b":           "not both",
		"kafka://" + long(64) + "/a":         "form of a host name",
		"kafka://main/\xff":                  "has a character outside",
		"kafka://main?pattern=" + long(1001): "at most 1000",
	} {
		_, err := ParseSource(text)
		requireInvalid(t, err, part)
	}
	_, err := Source{Cluster: "main", Topics: []string{"a"}}.WithTopics([]string{"b"}, "")
	requireInvalid(t, err, "separately")
	requireInvalid(t, Source{Cluster: "main"}.Check(), "names no topic")
}

func long(n int) string { return strings.Repeat("x", n) }

func TestPatternsMatchWholeNames(t *testing.T) {
	matches := Source{Pattern: "orders|returns"}.Matcher()
	require.True(t, matches("orders"))
	require.False(t, matches("orders2"))
	require.False(t, Source{Pattern: ".*"}.Matcher()("__consumer_offsets"), "internal topics")
	require.True(t, Source{Topics: []string{"a"}}.Matcher()("a"))
}

func TestSinks(t *testing.T) {
	got, err := ParseSink("service://Greeter/greet")
	require.NoError(t, err)
	require.Equal(t, Sink{"Greeter", "greet"}, got)
	for text, part := range map[string]string{
		"":                               "not of the form service://",
		"http://a/b":                     `has the scheme "http"`,
		"service:///greet":               "names no service",
		"service://Greeter":              "does not name one handler",
		"service://Greeter/":             "does not name one handler",
		"service://Greeter/k/greet":      "does not name one handler",
		"service://Gr\x01/h":             "control characters",
		"service://Gr\xff/h":             "not UTF-8",
		"service://" + long(1000) + "/h": "at most 1000",
	} {
		_, err := ParseSink(text)
		requireInvalid(t, err, part)
	}
}

type record struct {
	key     []byte
	headers map[string]string
}

func (r record) Topic() string    { return "orders" }
func (r record) Partition() int32 { return 3 }
func (r record) Key() []byte      { return r.key }
func (r record) Header(name string) ([]byte, bool) {
	v, ok := r.headers[strings.ToLower(name)]
	return []byte(v), ok
}

func TestTemplates(t *testing.T) {
	r := record{[]byte("k"), map[string]string{"tenant": "acme", "bad": "\xff"}}
	for text, want := range map[string]string{
		"": "", "fixed": "fixed", "{topic}": "orders", "{topic}/{partition}": "orders/3", "x-{key}-{header:Tenant}.": "x-k-acme.",
	} {
		template, err := ParseTemplate(text)
		require.NoError(t, err)
		require.Equal(t, text, template.String())
		got, err := template.Expand(r)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"{", "}", "{topic", "a}b", "{{topic}}", "{offset}", "{header:}", long(1001)} {
		_, err := ParseTemplate(text)
		require.Error(t, err, text)
	}
	for text, part := range map[string]string{"{header:none}": "does not have", "{header:bad}": "UTF-8"} {
		template, err := ParseTemplate(text)
		require.NoError(t, err)
		_, err = template.Expand(r)
		require.ErrorContains(t, err, part)
	}
	template, err := ParseTemplate("{key}")
	require.NoError(t, err)
	_, err = template.Expand(record{})
	require.ErrorContains(t, err, "needs a key")
	_, err = template.Expand(record{key: []byte{0xff}})
	require.ErrorContains(t, err, "UTF-8")
}

func TestHeaders(t *testing.T) {
	name, ok := HeaderName("X-Tenant")
	require.True(t, ok)
	require.Equal(t, "kafka.header.x-tenant", name)
	for _, bad := range []string{"", "a b", "a\n", "ä", "a:b", long(201)} {
		_, ok := HeaderName(bad)
		require.False(t, ok, bad)
	}
	require.Equal(t, []string{"a", "b"}, NormalHeaders([]string{"B", "a", "b"}))
	require.True(t, (&Options{Headers: []string{"a"}}).WantsHeader("A"))
	require.False(t, (&Options{Headers: []string{"a"}}).WantsHeader("b"))
	require.True(t, (&Options{AllHeaders: true}).WantsHeader("b"))
}

func valid() Subscription {
	return Subscription{
		Source: Source{Cluster: "main", Topics: []string{"t"}}, Sink: Sink{"S", "h"},
		Options: Options{AllHeaders: true, MaxInFlight: DefaultMaxInFlight}, Start: Start{Kind: StartLatest},
	}
}

func TestSubscriptionsAreChecked(t *testing.T) {
	s := valid()
	require.NoError(t, s.Check())
	scope, err := ParseTemplate("{topic}")
	require.NoError(t, err)
	for part, change := range map[string]func(*Subscription){
		"names no topic":             func(s *Subscription) { s.Topics = nil },
		"not both":                   func(s *Subscription) { s.Pattern = "a" },
		"at most 100":                func(s *Subscription) { s.Topics = strings.Split("a"+numbered(101), ",") },
		"names no service":           func(s *Subscription) { s.Service = "" },
		"ordering 9":                 func(s *Subscription) { s.Ordering = 9 },
		"on_error 9":                 func(s *Subscription) { s.OnError = 9 },
		"on_recreate 9":              func(s *Subscription) { s.OnRecreate = 9 },
		"tombstones 9":               func(s *Subscription) { s.Tombstones = 9 },
		"needs on_error":             func(s *Subscription) { s.DeadLetterTopic = "a" },
		"the topic of the record":    func(s *Subscription) { s.OnError, s.DeadLetterTopic = DeadLetters, "{topic}" },
		"dead_letter_topic \"a b\"":  func(s *Subscription) { s.OnError, s.DeadLetterTopic = DeadLetters, "a b" },
		"dead_letter_topic \"t\" is": func(s *Subscription) { s.OnError, s.DeadLetterTopic = DeadLetters, "t" },
		"dead_letter_topic \"t2\" is": func(s *Subscription) {
			s.Topics, s.Pattern, s.OnError, s.DeadLetterTopic = nil, "t.*", DeadLetters, "t2"
		},
		"dead_letter_topic \"t.dlq\" is": func(s *Subscription) {
			s.Topics, s.OnError, s.DeadLetterTopic = []string{"t", "t.dlq"}, DeadLetters, "{topic}.dlq"
		},
		"max_in_flight is 0":     func(s *Subscription) { s.MaxInFlight = 0 },
		"max_in_flight is 10001": func(s *Subscription) { s.MaxInFlight = 10_001 },
		"needs a scope":          func(s *Subscription) { s.LimitKey = scope },
		"all headers are handed": func(s *Subscription) { s.Headers = []string{"a"} },
		"name of an HTTP header": func(s *Subscription) { s.AllHeaders, s.Headers = false, []string{"a b"} },
		"start 0":                func(s *Subscription) { s.Start = Start{} },
		"out of range":           func(s *Subscription) { s.Start = Start{Kind: StartTimestamp, Timestamp: time.UnixMilli(-1)} },
		"has no offsets":         func(s *Subscription) { s.Start = Start{Kind: StartOffsets, Otherwise: StartLatest} },
		"other topic partitions": func(s *Subscription) { s.Start = Start{Kind: StartGroup} },
		"does not have": func(s *Subscription) {
			s.Start = Start{Kind: StartOffsets, Otherwise: StartLatest, Offsets: []TopicOffsets{{Topic: "other"}}}
		},
		"numbers from 0": func(s *Subscription) {
			s.Start = Start{Kind: StartOffsets, Otherwise: StartLatest, Offsets: []TopicOffsets{{"t", []PartitionOffset{{0, -1}}}}}
		},
		"each partition once": func(s *Subscription) {
			s.Start = Start{Kind: StartOffsets, Otherwise: StartLatest, Offsets: []TopicOffsets{{"t", []PartitionOffset{{1, 0}, {1, 0}}}}}
		},
		"partitions together": func(s *Subscription) {
			s.Offsets = []TopicStart{{TopicOffsets: TopicOffsets{Offsets: make([]PartitionOffset, maxStartPartitions+1)}}}
		},
		"the reason has":       func(s *Subscription) { s.Paused = &Pause{Reason: long(1001)} },
		"there is no property": func(s *Subscription) { s.Properties = map[string]string{"a": "b"} },
		"use --on-error, or":   func(s *Subscription) { s.Properties = map[string]string{"on-error": "skip"} },
		"the field start":      func(s *Subscription) { s.Properties = map[string]string{"start": "earliest"} },
	} {
		s := valid()
		change(&s)
		requireInvalid(t, s.Check(), part)
	}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(",t" + strings.Repeat("i", i))
	}
	return b.String()
}

func TestProperties(t *testing.T) {
	good := map[string]string{"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "statistics.interval.ms": "5"}
	notices, err := checkProperties(good, true)
	require.NoError(t, err)
	require.Len(t, notices, 1)
	require.Contains(t, notices[0], "statistics.interval.ms has no effect: the server has metrics of its own")
	for _, tc := range []struct {
		name, value string
		parts       []string
	}{
		{"bootstrap.server", "x", []string{`did you mean bootstrap.servers?`, "Known properties: auto.offset.reset, "}},
		{"ssl.keystore.location", "x", []string{"is not supported", "PEM"}},
		{"acks", "all", []string{"a property of producers"}},
		{"sasl.kerberos.keytab", "x", []string{"Kerberos is not supported"}},
		{"sasl.mechanism", "GSSAPI", []string{`"GSSAPI"`, "plain, scram-sha-256"}},
		{"fetch.min.bytes", "0", []string{"from 1 to 100000000"}},
		{"fetch.min.bytes", "1e3", []string{"expected a number"}},
		{"bootstrap.servers", "a:b", []string{"host:port"}},
		{"bootstrap.servers", ",", []string{"no address"}},
		{"sasl.password", "", []string{"sasl.password is invalid"}},
		{"client.id", long(257), []string{"it has 257 bytes, at most 256"}},
		{"group.id", long(1001), []string{"it has 1001 bytes, at most 1000"}},
		{"client.rack", "a\nb", []string{"control characters"}},
		{"ssl.ca.pem", "garbage", []string{"expected certificates in PEM"}},
		{"ssl.ca.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", []string{"certificate 1 is malformed"}},
		{"ssl.key.pem", "hidden", []string{"expected a private key in PEM"}},
		{"group.id", "a\x00", []string{"control characters"}},
		{"group.id", "\xff", []string{"not UTF-8"}},
		{"ssl.ca.pem", long(maxPropertyBytes + 1), []string{"at most 65536"}},
		{"sasl.oauthbearer.token.endpoint.url", "ftp://x", []string{"http or https URL"}},
		{"sasl.oauthbearer.token.endpoint.url", "https://user:hidden@x", []string{"must not contain credentials"}},
		{"enable.ssl.certificate.verification", "no", []string{"true, false"}},
	} {
		_, err := checkProperties(map[string]string{tc.name: tc.value}, false)
		requireInvalid(t, err, tc.parts...)
	}
	many := map[string]string{}
	for i := range maxProperties + 1 {
		many[long(i+1)] = "x"
	}
	_, err = checkProperties(many, false)
	requireInvalid(t, err, "at most 200")
	_, err = checkProperties(nil, true)
	requireInvalid(t, err, "need bootstrap.servers")
}

func TestSecretsAreRedacted(t *testing.T) {
	current := map[string]string{"sasl.password": "p", "ssl.key.pem": "k", "ssl.key.location": "/f", "sasl.oauthbearer.client.secret": "s", "group.id": "g"}
	shown := Redact(current)
	require.Equal(t, map[string]string{"sasl.password": "***", "ssl.key.pem": "***", "ssl.key.location": "/f", "sasl.oauthbearer.client.secret": "***", "group.id": "g"}, shown)
	shown["group.id"] = "h"
	edited, err := Unredact(shown, current)
	require.NoError(t, err)
	require.Equal(t, "p", edited["sasl.password"])
	require.Equal(t, "h", edited["group.id"])
	_, err = Unredact(shown, nil)
	requireInvalid(t, err, "stands for the current value")
	require.False(t, Secret("sasl.oauthbearer.token.endpoint.url"))
}

// Whoever may edit properties must not get the secrets in them by sending them elsewhere.
func TestSecretsStayWithTheirBrokers(t *testing.T) {
	cluster := Cluster{Name: "main", Properties: map[string]string{
		"bootstrap.servers": "a:1", "security.protocol": "sasl_ssl", "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "u", "sasl.password": "p",
	}}
	for n, value := range map[string]string{
		"bootstrap.servers": "evil:1", "metadata.broker.list": "evil:1", "security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.mechanisms": "PLAIN",
		"enable.ssl.certificate.verification": "false", "ssl.endpoint.identification.algorithm": "none", "ssl.ca.pem": pair(t).certificate,
	} {
		own := map[string]string{n: value}
		_, err := ClientOf(&cluster, &Subscription{Properties: own})
		requireInvalid(t, err, "the option sasl.password is needed as well")
		own["sasl.password"] = "own"
		c, err := ClientOf(&cluster, &Subscription{Properties: own})
		require.NoError(t, err)
		require.Equal(t, "own", c.SASL.Password)

		edited := Redact(cluster.Properties)
		edited[n] = value
		_, err = Unredact(edited, cluster.Properties)
		requireInvalid(t, err, "write the value")
		edited["sasl.password"] = "new"
		_, err = Unredact(edited, cluster.Properties)
		require.NoError(t, err)
	}
	_, err := ClientOf(&cluster, &Subscription{Properties: map[string]string{"bootstrap.servers": "a:1", "group.id": "g"}})
	require.NoError(t, err)
	_, err = Unredact(map[string]string{"sasl.password": "***"}, map[string]string{"bootstrap.servers": "a:1", "sasl.password": "p"})
	requireInvalid(t, err, "sasl.password is not kept, because bootstrap.servers changes where it is sent")
}

func TestBrokers(t *testing.T) {
	got, err := brokerAddresses(" a:1, PLAINTEXT://b:2,c,[::1]:3,")
	require.NoError(t, err)
	require.Equal(t, []string{"a:1", "b:2", "c:9092", "[::1]:3"}, got)
	for _, bad := range []string{"", "a:0", "a:99999", ":1", "a b:1", "a:1:2"} {
		_, err := brokerAddresses(bad)
		require.Error(t, err, bad)
	}
}

func TestClients(t *testing.T) {
	cluster := Cluster{Name: "main", Properties: map[string]string{"metadata.broker.list": "a", "fetch.min.bytes": "5", "isolation.level": "read_uncommitted"}}
	sub := valid()
	sub.ID, sub.Properties = "sub_1x", map[string]string{"fetch.min.bytes": "7", "socket.timeout.ms": "1500"}
	c, err := ClientOf(&cluster, &sub)
	require.NoError(t, err)
	require.Equal(t, Client{
		Brokers: []string{"a:9092"}, ClientID: "platform", Group: "sub_1x", ReadUncommitted: true, FetchMin: 7, RequestTimeout: 1500 * time.Millisecond,
	}, c)

	ca := pair(t).certificate
	cluster.Properties = map[string]string{
		"bootstrap.servers": "a:1", "security.protocol": "sasl_ssl", "sasl.mechanisms": "oauthbearer", "sasl.oauthbearer.method": "oidc",
		"sasl.oauthbearer.token.endpoint.url": "https://t", "sasl.oauthbearer.client.id": "i", "sasl.oauthbearer.client.secret": "s",
		"sasl.oauthbearer.extensions": "a=b, c=d", "ssl.ca.pem": ca, "ssl.endpoint.identification.algorithm": "none",
	}
	c, err = ClientOf(&cluster, &sub)
	require.NoError(t, err)
	require.Equal(t, &TLS{CA: PEM{Text: ca}, SkipHostname: true}, c.TLS)
	require.Equal(t, "OAUTHBEARER", c.SASL.Mechanism)
	require.Equal(t, OAuth{TokenURL: "https://t", ClientID: "i", ClientSecret: "s", Extensions: map[string]string{"a": "b", "c": "d"}}, c.SASL.OAuth)
	require.Equal(t, "SASL OAUTHBEARER", c.SASL.String())

	for part, p := range map[string]map[string]string{
		"needs sasl.mechanism":             {"security.protocol": "sasl_ssl"},
		"needs sasl.username":              {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN"},
		"sasl.mechanism needs":             {"sasl.mechanism": "PLAIN"},
		"the property sasl.password needs": {"sasl.password": "p"},
		"ssl.ca.location needs":            {"ssl.ca.location": "/f"},
		"a client certificate needs both":  {"security.protocol": "ssl", "ssl.key.pem": pair(t).key},
		"private key does not match":       {"security.protocol": "ssl", "ssl.certificate.pem": pair(t).certificate, "ssl.key.pem": pair(t).key},
		"OAUTHBEARER needs":                {"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER"},
		"two names of one property":        {"metadata.broker.list": "b:1"},
	} {
		p["bootstrap.servers"] = "a:1"
		_, err := ClientOf(&Cluster{Properties: p}, &Subscription{})
		requireInvalid(t, err, part)
	}
}

// texts are a certificate and its key in PEM.
type texts struct{ certificate, key string }

func pair(t *testing.T) texts {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return texts{
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	}
}

// Values that are allowed, but not supported, have the effect of the nearest one, with a notice.
func TestUnsupportedNumbers(t *testing.T) {
	properties := map[string]string{
		"fetch.wait.max.ms": "0", "connections.max.idle.ms": "0", "topic.metadata.refresh.interval.ms": "-1", "socket.timeout.ms": "10", "fetch.max.bytes": "100000000",
	}
	sub := valid()
	sub.Properties = properties
	c, err := ClientOf(&Cluster{Properties: map[string]string{"bootstrap.servers": "a:1", "metadata.max.age.ms": "86400000"}}, &sub)
	require.NoError(t, err)
	require.Equal(t, 10*time.Millisecond, c.FetchWait)
	require.Equal(t, 15*time.Minute, c.IdleTimeout, "connections are not closed")
	require.Equal(t, time.Hour, c.MetadataAge, "it is not refreshed")
	require.Equal(t, time.Second, c.RequestTimeout)
	require.EqualValues(t, MaxFetch, c.FetchMax)
	require.Equal(t, []string{
		"the property connections.max.idle.ms has the effect of 900000, which is the nearest value that is supported",
		"the property fetch.max.bytes has the effect of 16777216, which bounds the memory of the server; larger records are fetched one by one",
		"the property fetch.wait.max.ms has the effect of 10, which is the nearest value that is supported",
		"the property socket.timeout.ms has the effect of 1000, which is the nearest value that is supported",
		"the property topic.metadata.refresh.interval.ms has the effect of 3600000, which is the nearest value that is supported",
	}, Notices(properties))
}

func TestAnIncompleteClusterSaysWhatIsMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		properties map[string]string
		missing    string
	}{
		"mechanism":        {map[string]string{"security.protocol": "SASL_SSL"}, "security.protocol sasl_ssl needs sasl.mechanism"},
		"password":         {map[string]string{"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u"}, "sasl.mechanism PLAIN needs sasl.username and sasl.password"},
		"protocol":         {map[string]string{"sasl.username": "u", "sasl.password": "p"}, "needs security.protocol sasl_plaintext or sasl_ssl, not plaintext, which is the default"},
		"key":              {map[string]string{"security.protocol": "ssl", "ssl.certificate.location": "/c.pem"}, "a client certificate needs both"},
		"token endpoint":   {map[string]string{"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER needs"},
		"nothing":          {map[string]string{"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}, ""},
		"nothing, default": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			properties := map[string]string{"bootstrap.servers": "localhost:9092"}
			maps.Copy(properties, tc.properties)
			c := Cluster{Name: "main", Properties: properties}
			require.NoError(t, c.Check())
			if tc.missing == "" {
				require.Empty(t, c.Incomplete())
				return
			}
			require.Contains(t, c.Incomplete(), "only subscriptions that set what is missing can use the cluster: ")
			require.Contains(t, c.Incomplete(), tc.missing)
		})
	}
}

func TestDefaultStart(t *testing.T) {
	cluster := Cluster{Properties: map[string]string{"auto.offset.reset": "smallest"}}
	sub := Subscription{}
	require.Equal(t, Start{Kind: StartEarliest}, DefaultStart(&cluster, &sub))
	require.Equal(t, Start{Kind: StartLatest}, DefaultStart(nil, &sub))
	sub.Properties = map[string]string{"auto.offset.reset": "latest", "group.id": "g"}
	require.Equal(t, Start{Kind: StartGroup, Otherwise: StartLatest}, DefaultStart(&cluster, &sub))
}

func TestLag(t *testing.T) {
	require.EqualValues(t, 3, (&PartitionStatus{Position: 7, End: 10}).Lag())
	require.EqualValues(t, 0, (&PartitionStatus{Position: 11, End: 10}).Lag())
	require.EqualValues(t, -1, (&PartitionStatus{End: -1}).Lag())
	require.True(t, Blocked.MoreSevere(Running))
}
