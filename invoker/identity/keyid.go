package identity

import (
	"crypto/ed25519"
	"math/big"
	"slices"
)

const (
	keyIDPrefix    = "publickeyv1_"
	base58Alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
)

// keyID returns the text form of a public key.
func keyID(key ed25519.PublicKey) string { return keyIDPrefix + base58(key) }

// base58 encodes bytes in the Bitcoin alphabet without a checksum: as one number, preceded by
// a zero digit for each leading zero byte.
func base58(b []byte) string {
	var digits []byte
	base, digit := big.NewInt(int64(len(base58Alphabet))), new(big.Int)
	for n := new(big.Int).SetBytes(b); n.Sign() > 0; {
		n.DivMod(n, base, digit)
		digits = append(digits, base58Alphabet[digit.Int64()])
	}
	for _, c := range b {
		if c != 0 {
			break
		}
		digits = append(digits, base58Alphabet[0])
	}
	slices.Reverse(digits)
	return string(digits)
}
