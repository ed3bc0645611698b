package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"net/http"
	"regexp"
	"strings"
)

// secretPrefix begins every token, so that scanners for leaked secrets find it.
const secretPrefix = "plt_"

// Lengths in base 32: an ID of 80 bits, a secret of 256 bits.
const (
	idBytes      = 10
	secretBytes  = 32
	idLength     = 16
	secretLength = 52
)

var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Secret is a new token. Text is shown once and never stored.
type Secret struct {
	Text string
	ID   string
	Hash [sha256.Size]byte
}

// NewSecret returns a random token plt_<id>_<secret>.
func NewSecret() Secret {
	random := make([]byte, idBytes+secretBytes)
	_, _ = rand.Read(random) // never fails
	id := encoding.EncodeToString(random[:idBytes])
	text := secretPrefix + id + "_" + encoding.EncodeToString(random[idBytes:])
	return Secret{Text: text, ID: id, Hash: Hash(text)}
}

// Hash is what is stored of a token. Its 256 random bits need no slow hash.
func Hash(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }

// sameHash compares hashes in constant time.
func sameHash(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }

// SecretID returns the ID in a token; false if the text does not have the form of a token.
func SecretID(text string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(text, secretPrefix)
	if !ok || len(rest) != idLength+1+secretLength || rest[idLength] != '_' {
		return "", false
	}
	return rest[:idLength], true
}

// Bearer returns the token in the Authorization header of a request; empty if there is none.
func Bearer(r *http.Request) string {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// secrets are the forms of tokens, callback tokens and join tokens; the group is the part that is no
// secret.
var secrets = regexp.MustCompile(`(?i)((?:plt|plc|pjt)(?:_|%5F)[a-z2-7]{16})(?:_|%5F)[a-z0-9_%]{20,}`)

// WithoutSecrets replaces the secrets of tokens in a text, such as the path of a request.
func WithoutSecrets(text string) string { return secrets.ReplaceAllString(text, "${1}_***") }
