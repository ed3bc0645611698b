package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestKeyIDs(t *testing.T) {
	public, err := hex.DecodeString("8f9053bc7f96268d101879b685d2ceba4e8feeccca8134319a99e79997bf0dc5")
	require.NoError(t, err)
	require.Equal(t, "publickeyv1_AfQwmwfgEZhrWpvv8N52SHpRtZqGGaFr4AZN6qtYWSiY", keyID(public))
	for bytes, want := range map[string]string{"": "", "00": "1", "0000ff": "115Q", "39": "z", "3a": "21"} {
		b, err := hex.DecodeString(bytes)
		require.NoError(t, err)
		require.Equal(t, want, base58(b), bytes)
	}
}

// newSigner has a clock that the test moves.
func newSigner(t testing.TB) (*Signer, ed25519.PublicKey, *time.Time) {
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	s := New(private, time.Minute)
	now := time.Unix(1_700_000_000, 5e8)
	s.now = func() time.Time { return now }
	return s, public, &now
}

func open(t *testing.T, public ed25519.PublicKey, token string) (head, body map[string]any) {
	parts := strings.Split(token, ".")
	require.Len(t, parts, 3)
	decode := func(part string) []byte {
		b, err := base64.RawURLEncoding.DecodeString(part)
		require.NoError(t, err)
		return b
	}
	require.True(t, ed25519.Verify(public, []byte(parts[0]+"."+parts[1]), decode(parts[2])))
	require.NoError(t, json.Unmarshal(decode(parts[0]), &head))
	require.NoError(t, json.Unmarshal(decode(parts[1]), &body))
	return head, body
}

func TestTokens(t *testing.T) {
	s, public, _ := newSigner(t)
	head, body := open(t, public, s.Token("/invoke/S/h", ""))
	require.Equal(t, map[string]any{"typ": "JWT", "alg": "EdDSA", "kid": s.KeyID()}, head)
	require.Equal(t, map[string]any{"aud": "/invoke/S/h", "iat": 1.7e9, "nbf": 1.7e9 - 60, "exp": 1.7e9 + 60}, body)

	_, body = open(t, public, s.Token("/invoke/S/h", "a\"/\u00e9 <"))
	require.Equal(t, "a\"/\u00e9 <", body["sub"])
}

func TestTokensAreReusedForPartOfTheirLifetime(t *testing.T) {
	s, public, now := newSigner(t)
	first := s.Token("/a", "")
	*now = now.Add(14 * time.Second)
	require.Equal(t, first, s.Token("/a", ""))
	require.NotEqual(t, first, s.Token("/b", ""))
	*now = now.Add(time.Second)
	second := s.Token("/a", "")
	require.NotEqual(t, first, second)
	_, body := open(t, public, second)
	require.EqualValues(t, now.Unix(), body["iat"])
	require.NotEqual(t, s.Token("/a", "k"), s.Token("/a", "l"))
}

func TestCachedTokensAreBounded(t *testing.T) {
	s, _, _ := newSigner(t)
	for i := range 3 * maxCached {
		s.Token(strings.Repeat("x", i), "")
		require.LessOrEqual(t, len(s.cached), maxCached)
	}
}

func TestLoad(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	block := func(kind string, key any) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	write := func(text []byte) { require.NoError(t, os.WriteFile(file, text, 0o600)) }

	_, err = Load(file, time.Minute)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, file)
	for want, text := range map[string][]byte{
		"no PEM block":     []byte("secret"),
		"EC PRIVATE KEY":   block("EC PRIVATE KEY", other),
		"Ed25519 key is":   block("PRIVATE KEY", other),
		"parse PKCS#8 pri": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")}),
	} {
		write(text)
		_, err := Load(file, time.Minute)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, file)
		require.NotContains(t, err.Error(), "secret")
	}
	write(block("PRIVATE KEY", private))
	s, err := Load(file, time.Minute)
	require.NoError(t, err)
	require.Equal(t, keyID(private.Public().(ed25519.PublicKey)), s.KeyID())
}

func BenchmarkToken(b *testing.B) {
	for name, key := range map[string]string{"cached": "", "keyed": "key"} {
		b.Run(name, func(b *testing.B) {
			s, _, _ := newSigner(b)
			for b.Loop() {
				s.Token("/invoke/Greeter/greet", key)
			}
		})
	}
}
