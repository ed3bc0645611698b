package enroll

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"platform/internal/certs"
)

// tokenPrefix begins every join token, so that scanners for leaked secrets find it.
const tokenPrefix = "pjt_"

// tokenIDBytes is the size of the ID of a token.
const tokenIDBytes = 10

// maxTokenFile is the size of a file with a token.
const maxTokenFile = 4 << 10

var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Token permits a node to get its first certificate. It cannot be printed.
type Token struct {
	ID     string
	secret [sha256.Size]byte
	// Authority is the SHA-256 of the certificate of the authority, by which the node recognizes
	// the cluster.
	Authority [sha256.Size]byte
}

// errToken does not contain the token.
var errToken = errors.New("it is not a join token, such as platform cluster join-token create prints")

// NewToken returns a random token for the cluster of an authority.
func NewToken(authority [sha256.Size]byte) Token {
	random := make([]byte, tokenIDBytes+sha256.Size)
	_, _ = rand.Read(random) // never fails
	return Token{ID: encoding.EncodeToString(random[:tokenIDBytes]), secret: [sha256.Size]byte(random[tokenIDBytes:]), Authority: authority}
}

// ParseToken returns the token in a text.
func ParseToken(text string) (Token, error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	parts := strings.Split(rest, "_")
	if !ok || len(parts) != 3 {
		return Token{}, errToken
	}
	id, err1 := encoding.DecodeString(parts[0])
	secret, err2 := encoding.DecodeString(parts[1])
	authority, err3 := encoding.DecodeString(parts[2])
	if err1 != nil || err2 != nil || err3 != nil || len(id) != tokenIDBytes || len(secret) != sha256.Size || len(authority) != sha256.Size {
		return Token{}, errToken
	}
	return Token{ID: parts[0], secret: [sha256.Size]byte(secret), Authority: [sha256.Size]byte(authority)}, nil
}

// ReadToken returns the token in a file, which not every user may read.
func ReadToken(path string) (Token, error) {
	if err := certs.CheckPermissions(path); err != nil {
		return Token{}, err
	}
	file, err := os.Open(path)
	if err != nil {
		return Token{}, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxTokenFile))
	if err != nil {
		return Token{}, err
	}
	token, err := ParseToken(string(text))
	if err != nil {
		return Token{}, fmt.Errorf("%s: %w", path, err)
	}
	return token, nil
}

// Text returns the token pjt_<id>_<secret>_<authority>. It is shown once and never stored.
func (t Token) Text() string {
	return tokenPrefix + t.ID + "_" + encoding.EncodeToString(t.secret[:]) + "_" + encoding.EncodeToString(t.Authority[:])
}

// Hash is what is stored of the token. Its 256 random bits need no slow hash.
func (t Token) Hash() [sha256.Size]byte { return sha256.Sum256(t.secret[:]) }

// Format implements fmt.Formatter without the secret.
func (t Token) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "join token %s", t.ID) }

// LogValue implements slog.LogValuer without the secret.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.ID) }

// MarshalText implements encoding.TextMarshaler without the secret.
func (t Token) MarshalText() ([]byte, error) { return []byte("join token " + t.ID), nil }
