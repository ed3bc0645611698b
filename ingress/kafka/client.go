package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"platform/internal/certs"
	"platform/internal/subscription"
)

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Bounds of what a client fetches, unless the properties set others. Each broker has one fetch
// in memory: see Engine.fetchLimit.
const (
	fetchBytes          = 4 << 20
	minFetchBytes       = 64 << 10
	fetchPartitionBytes = 1 << 20
	fetchMemory         = 64 << 20  // that the clients share, per broker
	decompressedBytes   = 128 << 20 // of one batch of records
	dialTimeout         = 10 * time.Second
	idleTimeout         = 5 * time.Minute
	retryTimeout        = 10 * time.Second // of requests for metadata and offsets
	retryBackoff        = 250 * time.Millisecond
	retryBackoffMax     = 5 * time.Second
)

// fetchLimit bounds a fetch of the clients that are opened now. With many subscriptions it is
// smaller, since each of them has a client.
func (e *Engine) fetchLimit() int32 {
	e.mu.Lock()
	readers := len(e.readers)
	e.mu.Unlock()
	return int32(min(subscription.MaxFetch, max(minFetchBytes, fetchMemory/int64(max(1, readers))))) //nolint:gosec // bounded
}

// options returns the settings of a client, whose fetches have up to limit bytes, or one larger
// batch of records.
func options(c *subscription.Client, dial dialFunc, limit int32) ([]kgo.Opt, error) {
	isolation := kgo.ReadCommitted()
	if c.ReadUncommitted {
		isolation = kgo.ReadUncommitted()
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID(c.ClientID),
		kgo.FetchIsolationLevel(isolation),
		kgo.KeepControlRecords(),                    // positions move past them
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // an operator decides
		kgo.FetchMaxBytes(min(limit, or(c.FetchMax, fetchBytes))),
		kgo.FetchMaxPartitionBytes(min(limit, or(c.FetchPartitionMax, fetchPartitionBytes))),
		kgo.ConnIdleTimeout(or(c.IdleTimeout, idleTimeout)),
		kgo.RetryTimeout(retryTimeout),
		kgo.RecordDeliveryTimeout(30 * time.Second),
		kgo.ProducerLinger(0),                    // dead letters are written one after the other
		kgo.AllowIdempotentProduceCancellation(), // otherwise one that a broker has not confirmed cannot be given up
		kgo.DisableClientMetrics(),
	}
	if c.Rack != "" {
		opts = append(opts, kgo.Rack(c.Rack))
	}
	if c.FetchWait > 0 {
		opts = append(opts, kgo.FetchMaxWait(c.FetchWait))
	} else {
		opts = append(opts, kgo.FetchMaxWait(500*time.Millisecond))
	}
	if c.FetchMin > 0 {
		opts = append(opts, kgo.FetchMinBytes(min(limit, c.FetchMin, or(c.FetchMax, fetchBytes))))
	}
	if c.RequestTimeout > 0 {
		opts = append(opts, kgo.RequestTimeoutOverhead(c.RequestTimeout))
	}
	if c.MetadataAge > 0 {
		opts = append(opts, kgo.MetadataMaxAge(c.MetadataAge))
	}
	if c.RetryBackoff > 0 || c.RetryBackoffMax > 0 {
		opts = append(opts, kgo.RetryBackoffFn(backoff(or(c.RetryBackoff, retryBackoff), or(c.RetryBackoffMax, retryBackoffMax))))
	}
	if _, err := tlsConfig(c.TLS); err != nil {
		return nil, err
	}
	opts = append(opts, kgo.Dialer(dialer(dial, or(c.DialTimeout, dialTimeout), c.TLS)))
	mechanism, err := saslMechanism(c.SASL, dial)
	if mechanism != nil {
		opts = append(opts, kgo.SASL(mechanism))
	}
	return opts, err
}

// backoff returns a function that returns the delay after a number of failures: low, doubled with
// each one up to high, a random part of which is left out.
func backoff(low, high time.Duration) func(failures int) time.Duration {
	return func(failures int) time.Duration {
		delay := max(low, high)
		if doubled := low << min(max(failures-1, 0), 16); doubled < delay {
			delay = doubled
		}
		return delay - rand.N(delay/4+1)
	}
}

func or[V int32 | time.Duration](v, otherwise V) V {
	if v > 0 {
		return v
	}
	return otherwise
}

// dialer returns a function that connects to brokers, with TLS if there are settings. Each connection
// reads the files of these, since certificates are replaced before they expire.
func dialer(dial dialFunc, timeout time.Duration, settings *subscription.TLS) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		conn, err := dial(ctx, network, address)
		if err != nil || settings == nil {
			return conn, err
		}
		secure, err := tlsConfig(settings)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		if secure.ServerName, _, err = net.SplitHostPort(address); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		encrypted := tls.Client(conn, secure)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("TLS handshake with %s: %w", address, err), conn.Close())
		}
		return encrypted, nil
	}
}

func tlsConfig(t *subscription.TLS) (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if c.RootCAs, err = pool(t.CA); err != nil {
		return nil, err
	}
	certificate, err := read(t.Certificate)
	if err != nil {
		return nil, err
	}
	if certificate != nil {
		key, err := readKey(t.Key)
		if err != nil {
			return nil, err
		}
		pair, err := t.KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	switch {
	case t.SkipVerify:
		c.InsecureSkipVerify = true // as configured
	case t.SkipHostname:
		verifyChainOnly(c)
	}
	return c, nil
}

// verifyChainOnly verifies the chain of the certificate, but not the name in it.
func verifyChainOnly(c *tls.Config) {
	roots := c.RootCAs
	c.InsecureSkipVerify = true // VerifyConnection verifies
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errors.New("the broker sent no certificate")
		}
		o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, cert := range s.PeerCertificates[1:] {
			o.Intermediates.AddCert(cert)
		}
		_, err := s.PeerCertificates[0].Verify(o)
		return err
	}
}

// pool returns the certificates of a PEM, nil if there is none.
func pool(p subscription.PEM) (*x509.CertPool, error) {
	text, err := read(p)
	if text == nil || err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New("the CA certificates are not in PEM")
	}
	return roots, nil
}

// read returns the text of a PEM, nil if there is none.
func read(p subscription.PEM) ([]byte, error) {
	switch {
	case p.Text != "":
		return []byte(p.Text), nil
	case p.File == "" || p.File == "probe":
		return nil, nil
	}
	// The path comes from the definition of a Kafka cluster: a device or a pipe has no end.
	if info, err := os.Stat(p.File); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() || info.Size() > maxPEM {
		return nil, fmt.Errorf("%s is not a file of at most %d bytes", p.File, maxPEM)
	}
	return os.ReadFile(p.File)
}

// readKey is read for a key, which is refused if every user of the machine can read its file.
func readKey(p subscription.PEM) ([]byte, error) {
	if p.Text == "" && p.File != "" && p.File != "probe" {
		if err := certs.CheckPermissions(p.File); err != nil {
			return nil, err
		}
	}
	return read(p)
}

// maxPEM bounds a file with certificates or a key.
const maxPEM = 1 << 20

func saslMechanism(s *subscription.SASL, dial dialFunc) (sasl.Mechanism, error) {
	if s == nil {
		return nil, nil
	}
	switch s.Mechanism {
	case "PLAIN":
		return plain.Auth{User: s.Username, Pass: s.Password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: s.Username, Pass: s.Password}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: s.Username, Pass: s.Password}.AsSha512Mechanism(), nil
	case "OAUTHBEARER":
		roots, err := pool(s.OAuth.CA)
		if err != nil {
			return nil, err
		}
		client := &http.Client{
			Timeout:       dialTimeout,
			Transport:     &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		o := s.OAuth
		return oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
			token, err := fetchToken(ctx, client, &o)
			return oauth.Auth{Token: token, Extensions: o.Extensions}, err
		}), nil
	}
	return nil, fmt.Errorf("sasl.mechanism %s is not supported", s.Mechanism)
}

// errTokenRefused means that the credentials for tokens are wrong.
var errTokenRefused = errors.New("the token endpoint refused the credentials")

// maxToken bounds the response of a token endpoint.
const maxToken = 64 << 10

// fetchToken requests a token with the credentials of the client.
func fetchToken(ctx context.Context, client *http.Client, o *subscription.OAuth) (string, error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if o.Scope != "" {
		form.Set("scope", o.Scope)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.SetBasicAuth(url.QueryEscape(o.ClientID), url.QueryEscape(o.ClientSecret))
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("request a token: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxToken))
	if err != nil {
		return "", fmt.Errorf("request a token: %w", err)
	}
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusBadRequest {
		return "", fmt.Errorf("%w: %s responded with status %d", errTokenRefused, o.TokenURL, resp.StatusCode)
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the token endpoint %s responded with status %d", o.TokenURL, resp.StatusCode)
	}
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Token == "" {
		return "", fmt.Errorf("the token endpoint %s did not respond with an access_token in JSON", o.TokenURL)
	}
	return answer.Token, nil
}
