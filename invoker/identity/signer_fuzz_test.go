package identity

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
	"time"
)

// FuzzKeyFile: a key file is refused, or has a key whose signatures hold.
func FuzzKeyFile(f *testing.F) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	f.Add(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Headers: map[string]string{"a": "b"}, Bytes: der[:20]}))
	f.Add(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: der}))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\n\n-----END PRIVATE KEY-----"))
	f.Fuzz(func(t *testing.T, text []byte) {
		key, err := parse(text)
		if err != nil {
			return
		}
		s := New(key, time.Minute)
		token := s.Token("/invoke/A/b", "k\xff\"")
		signed, signature, _ := cutLast(token)
		raw, err := base64.RawURLEncoding.DecodeString(signature)
		if err != nil || !ed25519.Verify(key.Public().(ed25519.PublicKey), []byte(signed), raw) {
			t.Fatalf("%s: the signature does not hold: %v", token, err)
		}
		if !strings.HasPrefix(s.KeyID(), keyIDPrefix) {
			t.Fatalf("key id %q", s.KeyID())
		}
	})
}

func cutLast(token string) (before, after string, found bool) {
	at := strings.LastIndexByte(token, '.')
	return token[:max(at, 0)], token[at+1:], at >= 0
}
