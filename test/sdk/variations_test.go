package sdk

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// variation is a way in which the server invokes the same services.
type variation struct {
	name     string
	protocol int               // version the server chooses, 6 unless set
	server   map[string]string // configuration of the server
	service  map[string]string // environment of the services
	http11   bool              // register for HTTP/1.1, hence request-response
	feature  string            // what a language must offer
	themes   []string          // all unless set

	// prepare adds generated settings, such as keys.
	prepare func(t *testing.T, v *variation)
}

// inactivity is set to zero to make every await suspend that is not already complete.
const inactivity = "WORKER__INVOKER__INACTIVITY_TIMEOUT"

const protocol7 = "EXPERIMENTAL_ENABLE_PROTOCOL_V7"

var variations = []variation{
	{name: "default"},
	{name: "suspend", server: map[string]string{inactivity: "0s"}},
	// The services request lazy state.
	{name: "lazy-state", service: map[string]string{"LAZY_STATE": "1"}, feature: "lazy-state"},
	// The server sends no state eagerly, or only what fits.
	{name: "no-eager-state", server: map[string]string{"WORKER__INVOKER__EAGER_STATE_SIZE_LIMIT": "0"}},
	{name: "partial-state", server: map[string]string{"WORKER__INVOKER__EAGER_STATE_SIZE_LIMIT": "24"}},
	// The services read the whole request before they respond.
	{name: "request-response", service: map[string]string{"BIDI": "0"}, feature: "request-response"},
	// The services use HTTP/1.1, which is also request-response.
	{name: "http-1.1", http11: true, service: map[string]string{"HTTP11": "1", "BIDI": "0"}, feature: "request-response"},
	{name: "one-partition", server: map[string]string{"DEFAULT_NUM_PARTITIONS": "1"}},
	// The services announce version 5 only.
	{name: "protocol-5", protocol: 5},
	{name: "protocol-5-suspend", protocol: 5, server: map[string]string{inactivity: "0s"}},
	{name: "protocol-7", protocol: 7, server: map[string]string{protocol7: "true"}},
	{name: "protocol-7-suspend", protocol: 7, server: map[string]string{protocol7: "true", inactivity: "0s"}},
	// The services reject unsigned requests.
	{name: "signed", feature: "identity", prepare: sign, themes: []string{"echo", "steps", "calls", "state"}},
}

// version is the protocol version that the server must choose.
func (v variation) version() int {
	if v.protocol == 0 {
		return 6
	}
	return v.protocol
}

// selectedVariations returns the variations that SDK_VARIATIONS names.
func selectedVariations(t *testing.T) []variation {
	names := os.Getenv("SDK_VARIATIONS")
	switch names {
	case "":
		return variations[:1]
	case "all":
		return variations
	}
	var out []variation
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(variations, func(v variation) bool { return v.name == name })
		require.GreaterOrEqual(t, i, 0, "SDK_VARIATIONS names the unknown variation %q", name)
		out = append(out, variations[i])
	}
	return out
}

// sign generates a key pair, the private key for the server and the public key for the
// services.
func sign(t *testing.T, v *variation) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "identity.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	require.NoError(t, os.WriteFile(path, text, 0o600))
	v.server = map[string]string{"WORKER__INVOKER__REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE": path}
	v.service = map[string]string{"IDENTITY_KEY": "publickeyv1_" + base58(public)}
}

// base58 encodes bytes with the Bitcoin alphabet, without a checksum.
func base58(raw []byte) string {
	const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	var out []byte
	n, digit, radix := new(big.Int).SetBytes(raw), new(big.Int), big.NewInt(58)
	for n.Sign() > 0 {
		n.DivMod(n, radix, digit)
		out = append(out, alphabet[digit.Int64()])
	}
	for _, b := range raw {
		if b != 0 {
			break
		}
		out = append(out, alphabet[0])
	}
	slices.Reverse(out)
	return string(out)
}
