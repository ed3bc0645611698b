package ids

import (
	"errors"
	"math/bits"
)

const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

const (
	width64  = 11 // base62 digits of a 64-bit number
	width128 = 22 // base62 digits of a 128-bit number
)

var (
	errDigit    = errors.New("character outside 0-9, a-z, A-Z")
	errOverflow = errors.New("number too large")
)

var digits = func() (d [256]int8) {
	for i := range d {
		d[i] = -1
	}
	for i := range len(alphabet) {
		d[alphabet[i]] = int8(i)
	}
	return d
}()

// uint128 is an unsigned number of 128 bits.
type uint128 struct{ hi, lo uint64 }

const pow10of62 = 62 * 62 * 62 * 62 * 62 * 62 * 62 * 62 * 62 * 62

// put62 writes n as base62, most significant digit first, padded with zeros to the
// length of dst.
func put62(dst []byte, n uint128) {
	// Ten digits at a time fit into 64 bits, whose division by a constant is a multiplication.
	for i := len(dst); i > 0; {
		var ten uint64
		n.hi, ten = n.hi/pow10of62, n.hi%pow10of62
		n.lo, ten = bits.Div64(ten, n.lo, pow10of62)
		for end := max(i-10, 0); i > end; {
			i--
			dst[i] = alphabet[ten%62]
			ten /= 62
		}
	}
}

// parse62 is the inverse of put62.
func parse62(s string) (uint128, error) {
	var n uint128
	for i := range len(s) {
		d := digits[s[i]]
		if d < 0 {
			return uint128{}, errDigit
		}
		over, hi := bits.Mul64(n.hi, 62)
		carry, lo := bits.Mul64(n.lo, 62)
		hi, c1 := bits.Add64(hi, carry, 0)
		lo, c2 := bits.Add64(lo, uint64(d), 0)
		hi, c3 := bits.Add64(hi, 0, c2)
		if over != 0 || c1 != 0 || c3 != 0 {
			return uint128{}, errOverflow
		}
		n = uint128{hi, lo}
	}
	return n, nil
}
