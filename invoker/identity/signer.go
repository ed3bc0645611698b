package identity

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// Header names of a signed request, in lower case, and the value of SchemeHeader.
const (
	SchemeHeader = "x-restate-signature-scheme"
	TokenHeader  = "x-restate-jwt-v1"
	Scheme       = "v1"
)

const (
	// reuseFraction: a token is reused for 1/reuseFraction of the leeway.
	reuseFraction = 4
	// maxCached bounds the cached tokens; there is one per handler without a key.
	maxCached = 1024
)

// Signer issues tokens signed with one key. It is safe for concurrent use.
type Signer struct {
	private ed25519.PrivateKey
	leeway  time.Duration
	keyID   string
	head    string // encoded header of all tokens, including the dot
	now     func() time.Time

	mu     sync.RWMutex // covers cached
	cached map[string]token
}

// token is a cached token.
type token struct {
	text  string
	until time.Time
}

// Load reads an Ed25519 private key in PEM format (PKCS#8) from a file. Tokens are valid
// from leeway before to leeway after they are issued.
func Load(file string, leeway time.Duration) (*Signer, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return New(key, leeway), nil
}

// New returns a signer for a key.
func New(key ed25519.PrivateKey, leeway time.Duration) *Signer {
	id := keyID(key.Public().(ed25519.PublicKey))
	head := `{"typ":"JWT","alg":"EdDSA","kid":"` + id + `"}`
	return &Signer{
		private: key, leeway: leeway, keyID: id, now: time.Now,
		head:   base64.RawURLEncoding.EncodeToString([]byte(head)) + ".",
		cached: map[string]token{},
	}
}

func parse(text []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(text)
	switch {
	case block == nil:
		return nil, errors.New("the file contains no PEM block")
	case block.Type != "PRIVATE KEY":
		return nil, fmt.Errorf("the file contains a %q, a PKCS#8 \"PRIVATE KEY\" is required", block.Type)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse PKCS#8 private key: %w", err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the key is a %T, an Ed25519 key is required; create one with openssl genpkey -algorithm ed25519", key)
	}
	return private, nil
}

// KeyID returns the public key in the form used to configure services.
func (s *Signer) KeyID() string { return s.keyID }

// Token returns a token for a request. The audience is its path below the endpoint's base
// path; the subject is the key of the target, or empty.
//
// A signature takes about 20 µs, so tokens without a subject are reused for part of their
// lifetime.
func (s *Signer) Token(audience, subject string) string {
	now := s.now()
	if subject != "" {
		return s.sign(audience, subject, now)
	}
	s.mu.RLock()
	cachedToken := s.cached[audience]
	s.mu.RUnlock()
	if now.Before(cachedToken.until) {
		return cachedToken.text
	}
	issued := token{s.sign(audience, "", now), now.Add(s.leeway / reuseFraction)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.cached) >= maxCached {
		clear(s.cached)
	}
	s.cached[audience] = issued
	return issued.text
}

// claims are the claims that verifiers require.
type claims struct {
	Audience  string `json:"aud"`
	Expires   int64  `json:"exp"`
	IssuedAt  int64  `json:"iat"`
	NotBefore int64  `json:"nbf"`
	Subject   string `json:"sub,omitempty"`
}

func (s *Signer) sign(audience, subject string, now time.Time) string {
	body, err := json.Marshal(claims{
		Audience: audience, Subject: subject,
		IssuedAt: now.Unix(), NotBefore: now.Add(-s.leeway).Unix(), Expires: now.Add(s.leeway).Unix(),
	})
	if err != nil {
		panic("identity: claims of " + strconv.Quote(audience) + ": " + err.Error()) // strings and numbers can always be encoded
	}
	b := base64.RawURLEncoding.AppendEncode([]byte(s.head), body)
	signature := ed25519.Sign(s.private, b)
	return string(base64.RawURLEncoding.AppendEncode(append(b, '.'), signature))
}
