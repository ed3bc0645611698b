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

// The headers of a signed request, in lower case, and the value of the first.
const (
	SchemeHeader = "x-restate-signature-scheme"
	TokenHeader  = "x-restate-jwt-v1"
	Scheme       = "v1"
)

const (
	// reuse is the part of its life, 1/reuse, for which a token is used again.
	reuse = 4
	// maxReused bounds the tokens that are kept; there is one for each handler
	// without key.
	maxReused = 1024
)

// Signer makes tokens with one key. Its methods may be called concurrently.
type Signer struct {
	private ed25519.PrivateKey
	leeway  time.Duration
	keyID   string
	head    string // of all tokens, encoded, with the dot after it
	now     func() time.Time

	mu     sync.RWMutex // guards reused
	reused map[string]token
}

// token is one that may be used again.
type token struct {
	text  string
	until time.Time
}

// Load reads an Ed25519 private key in PEM form (PKCS#8) from a file. Tokens are
// valid from leeway before they are made until leeway after.
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
		reused: map[string]token{},
	}
}

func parse(text []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(text)
	switch {
	case block == nil:
		return nil, errors.New("no PEM block in the file")
	case block.Type != "PRIVATE KEY":
		return nil, fmt.Errorf("the file holds a %q where a PKCS#8 \"PRIVATE KEY\" is needed", block.Type)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse PKCS#8 private key: %w", err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the key is a %T where an Ed25519 key is needed; openssl genpkey -algorithm ed25519 makes one", key)
	}
	return private, nil
}

// KeyID is the public key in the form that services are configured with.
func (s *Signer) KeyID() string { return s.keyID }

// Token signs a request. The audience is its path below the endpoint's base path,
// the subject the key of the target, empty if it has none.
//
// A signature takes some 20 µs, so tokens without subject are used again for a part
// of their life.
func (s *Signer) Token(audience, subject string) string {
	now := s.now()
	if subject != "" {
		return s.sign(audience, subject, now)
	}
	s.mu.RLock()
	known := s.reused[audience]
	s.mu.RUnlock()
	if now.Before(known.until) {
		return known.text
	}
	made := token{s.sign(audience, "", now), now.Add(s.leeway / reuse)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.reused) >= maxReused {
		clear(s.reused)
	}
	s.reused[audience] = made
	return made.text
}

// claims are those that verifiers demand.
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
		panic("identity: claims of " + strconv.Quote(audience) + ": " + err.Error()) // strings and numbers can be encoded
	}
	b := base64.RawURLEncoding.AppendEncode([]byte(s.head), body)
	signature := ed25519.Sign(s.private, b)
	return string(base64.RawURLEncoding.AppendEncode(append(b, '.'), signature))
}
