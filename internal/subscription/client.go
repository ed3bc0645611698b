package subscription

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
)

// Client are the settings of a Kafka client, from the properties of a cluster and of a
// subscription. The zero value of a duration or size stands for the default of the client.
type Client struct {
	Brokers  []string // host:port
	ClientID string
	Rack     string
	Group    string // to which positions are committed
	TLS      *TLS   // nil: without
	SASL     *SASL  // nil: without
	// ReadUncommitted delivers records of transactions before these are committed.
	ReadUncommitted bool

	FetchWait                                time.Duration
	FetchMin, FetchMax, FetchPartitionMax    int32
	RequestTimeout, DialTimeout, IdleTimeout time.Duration
	MetadataAge                              time.Duration
	RetryBackoff, RetryBackoffMax            time.Duration
}

// TLS are the settings of TLS. Each PEM has either a text or the name of a file.
type TLS struct {
	CA, Certificate, Key PEM
	KeyPassword          string
	SkipVerify           bool // of the certificate chain of brokers
	SkipHostname         bool // of the name in it
}

// KeyPair returns the certificate of the client, from texts in PEM. KeyPassword decrypts the key, if
// it is encrypted.
func (t *TLS) KeyPair(certificate, key []byte) (tls.Certificate, error) {
	block, _ := pem.Decode(key)
	if block != nil && x509.IsEncryptedPEMBlock(block) { //nolint:staticcheck // the only form that the standard library reads
		der, err := x509.DecryptPEMBlock(block, []byte(t.KeyPassword)) //nolint:staticcheck // see above
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("decrypt the key with ssl.key.password: %w", err)
		}
		key = pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: der})
	} else if block != nil && strings.Contains(block.Type, "ENCRYPTED") {
		return tls.Certificate{}, errors.New("the key is encrypted with PKCS #8, which is not supported; decrypt it or use the legacy PEM encryption")
	}
	return tls.X509KeyPair(certificate, key)
}

// PEM is a certificate or key. Both are empty if there is none.
type PEM struct{ Text, File string }

// SASL are the credentials for brokers.
type SASL struct {
	Mechanism          string // PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER
	Username, Password string
	OAuth              OAuth
}

// OAuth defines where tokens for OAUTHBEARER come from.
type OAuth struct {
	TokenURL, ClientID, ClientSecret, Scope string
	Extensions                              map[string]string
	CA                                      PEM // of the token endpoint
}

// DefaultClientID is the client.id unless a property sets another.
const DefaultClientID = "platform"

// ClientOf returns the settings of the client of a subscription. The error has code META0009, or
// META0020 if secrets cannot be decrypted.
func ClientOf(c *Cluster, s *Subscription) (Client, error) {
	if err := cmp.Or(c.Unreadable, s.Unreadable); err != nil {
		return Client{}, err
	}
	p := maps.Clone(c.Properties)
	if p == nil {
		p = map[string]string{}
	}
	if s.Properties["metadata.broker.list"] != "" {
		delete(p, "bootstrap.servers")
	}
	if s.Properties["bootstrap.servers"] != "" {
		delete(p, "metadata.broker.list")
	}
	maps.Copy(p, s.Properties)
	if err := checkInherited(c.Properties, s.Properties, p); err != nil {
		return Client{}, err
	}
	if _, err := checkProperties(p, true); err != nil {
		return Client{}, err
	}
	addresses, err := brokerAddresses(first(p, "bootstrap.servers", "metadata.broker.list"))
	if err != nil {
		return Client{}, invalid("bootstrap.servers: %v", err).In("bootstrap.servers")
	}
	out := Client{
		Brokers: addresses, ClientID: first(p, "client.id"), Rack: p["client.rack"], Group: first(p, "group.id"),
		ReadUncommitted: strings.EqualFold(p["isolation.level"], "read_uncommitted"),
		FetchWait:       milliseconds(p, "fetch.wait.max.ms"), FetchMin: size(p, "fetch.min.bytes"), FetchMax: size(p, "fetch.max.bytes"),
		FetchPartitionMax: size(p, "max.partition.fetch.bytes", "fetch.message.max.bytes"),
		RequestTimeout:    milliseconds(p, "socket.timeout.ms"), DialTimeout: milliseconds(p, "socket.connection.setup.timeout.ms"),
		IdleTimeout: milliseconds(p, "connections.max.idle.ms"), MetadataAge: milliseconds(p, "topic.metadata.refresh.interval.ms", "metadata.max.age.ms"),
		RetryBackoff: milliseconds(p, "retry.backoff.ms"), RetryBackoffMax: milliseconds(p, "retry.backoff.max.ms"),
	}
	if out.ClientID == "" {
		out.ClientID = DefaultClientID
	}
	if out.Group == "" {
		out.Group = s.ID
	}
	return out, out.secure(p)
}

// shownProtocol is a security.protocol in messages.
func shownProtocol(protocol string) string {
	if protocol == "" {
		return "plaintext, which is the default"
	}
	return quote(protocol)
}

// secure sets TLS and SASL.
func (c *Client) secure(p map[string]string) error {
	protocol := strings.ToLower(p["security.protocol"])
	encrypted, authenticated := strings.HasSuffix(protocol, "ssl"), strings.HasPrefix(protocol, "sasl_")
	if encrypted {
		c.TLS = &TLS{
			CA:          PEM{p["ssl.ca.pem"], p["ssl.ca.location"]},
			Certificate: PEM{p["ssl.certificate.pem"], p["ssl.certificate.location"]},
			Key:         PEM{p["ssl.key.pem"], p["ssl.key.location"]}, KeyPassword: p["ssl.key.password"],
			SkipVerify:   strings.EqualFold(p["enable.ssl.certificate.verification"], "false"),
			SkipHostname: hasEmpty(p, "ssl.endpoint.identification.algorithm"),
		}
		if c.TLS.Certificate.none() != c.TLS.Key.none() {
			return invalid("a client certificate needs both ssl.certificate.location and ssl.key.location (or the …pem properties)").In("ssl.certificate.location")
		}
		if t := c.TLS; t.Certificate.Text != "" && t.Key.Text != "" {
			if _, err := t.KeyPair([]byte(t.Certificate.Text), []byte(t.Key.Text)); err != nil {
				return invalid("ssl.certificate.pem and ssl.key.pem: %v", err).In("ssl.key.pem")
			}
		}
	} else if n := anyOf(p, "ssl."); n != "" {
		return invalid("the property %s needs security.protocol ssl or sasl_ssl, not %s", n, shownProtocol(protocol)).In(n)
	}
	mechanism := strings.ToUpper(first(p, "sasl.mechanism", "sasl.mechanisms"))
	if !authenticated {
		if n := anyOf(p, "sasl."); n != "" {
			return invalid("the property %s needs security.protocol sasl_plaintext or sasl_ssl, not %s", n, shownProtocol(protocol)).In(n)
		}
		return nil
	}
	c.SASL = &SASL{Mechanism: mechanism, Username: p["sasl.username"], Password: p["sasl.password"]}
	switch mechanism {
	case "":
		return invalid("security.protocol %s needs sasl.mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER", protocol).In("sasl.mechanism")
	case "OAUTHBEARER":
		c.SASL.OAuth = OAuth{
			TokenURL: p["sasl.oauthbearer.token.endpoint.url"], Scope: p["sasl.oauthbearer.scope"],
			ClientID:     first(p, "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id"),
			ClientSecret: first(p, "sasl.oauthbearer.client.secret", "sasl.oauthbearer.client.credentials.client.secret"),
			CA:           PEM{p["https.ca.pem"], p["https.ca.location"]},
		}
		if o := c.SASL.OAuth; o.TokenURL == "" || o.ClientID == "" || o.ClientSecret == "" {
			return invalid("OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url, sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret").In("sasl.oauthbearer.token.endpoint.url")
		}
		return c.SASL.OAuth.extend(p["sasl.oauthbearer.extensions"])
	default:
		if c.SASL.Username == "" || c.SASL.Password == "" {
			return invalid("sasl.mechanism %s needs sasl.username and sasl.password", mechanism).In("sasl.username")
		}
	}
	return nil
}

// extend parses a list of key=value.
func (o *OAuth) extend(list string) error {
	for _, entry := range strings.Split(list, ",") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		key, value, ok := strings.Cut(strings.TrimSpace(entry), "=")
		if !ok || key == "" {
			return invalid("sasl.oauthbearer.extensions is a list of key=value, separated by commas").In("sasl.oauthbearer.extensions")
		}
		if o.Extensions == nil {
			o.Extensions = map[string]string{}
		}
		o.Extensions[key] = value
	}
	return nil
}

func (p PEM) none() bool { return p.Text == "" && p.File == "" }

// first returns the value of the first property that is set.
func first(p map[string]string, names ...string) string {
	for _, n := range names {
		if p[n] != "" {
			return p[n]
		}
	}
	return ""
}

// hasEmpty reports whether a property is set to nothing or to none.
func hasEmpty(p map[string]string, name string) bool {
	value, set := p[name]
	return set && (value == "" || strings.EqualFold(value, "none"))
}

// anyOf returns the first name with a prefix, "" if there is none.
func anyOf(p map[string]string, prefix string) string {
	for _, n := range sortedNames(p) {
		if strings.HasPrefix(n, prefix) && n != "ssl.endpoint.identification.algorithm" {
			return n
		}
	}
	return ""
}

func milliseconds(p map[string]string, names ...string) time.Duration {
	return time.Duration(integer(p, names...)) * time.Millisecond
}

func size(p map[string]string, names ...string) int32 {
	return int32(integer(p, names...)) //nolint:gosec // bounded by MaxFetch
}

// integer returns the value of the first number that is set, which was checked; 0 if there is none.
func integer(p map[string]string, names ...string) int64 {
	for _, name := range names {
		if n, err := strconv.ParseInt(p[name], 10, 64); err == nil {
			return effectiveValue(name, n)
		}
	}
	return 0
}

// DefaultStart returns where a subscription starts if that was not requested: at the committed
// offsets of a group that the properties name, otherwise as auto.offset.reset says.
func DefaultStart(c *Cluster, s *Subscription) Start {
	reset := StartLatest
	value := s.Properties["auto.offset.reset"]
	if value == "" && c != nil {
		value = c.Properties["auto.offset.reset"]
	}
	switch strings.ToLower(value) {
	case "smallest", "earliest", "beginning":
		reset = StartEarliest
	}
	if s.Properties["group.id"] != "" {
		return Start{Kind: StartGroup, Otherwise: reset}
	}
	return Start{Kind: reset}
}

// String returns a short text for operators, without secrets.
func (s *SASL) String() string { return fmt.Sprintf("SASL %s", s.Mechanism) }
