package ids

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/zeebo/xxh3"
)

// InvocationLen is the length of an invocation's text form.
const InvocationLen = len(invocationPrefix) + width64 + width128

const invocationPrefix = "inv_1"

// Invocation identifies one invocation: partition key (8 bytes, big endian), then
// the unique part (16 bytes). The zero value identifies nothing.
type Invocation [24]byte

// errFormat is wrapped by every error of the Parse functions.
var errFormat = errors.New("malformed id")

// NewInvocation joins a partition key and a unique part.
func NewInvocation(partitionKey uint64, unique [16]byte) (id Invocation) {
	binary.BigEndian.PutUint64(id[:8], partitionKey)
	copy(id[8:], unique[:])
	return id
}

// PartitionKey is the number that routes the invocation to its partition.
func (id Invocation) PartitionKey() uint64 { return binary.BigEndian.Uint64(id[:8]) }

// IsZero reports whether id identifies nothing.
func (id Invocation) IsZero() bool { return id == Invocation{} }

// Compare orders ids by their bytes.
func (id Invocation) Compare(other Invocation) int { return bytes.Compare(id[:], other[:]) }

// String is the text form, "inv_1" followed by 33 base62 characters.
func (id Invocation) String() string {
	var b [InvocationLen]byte
	return string(id.AppendText(b[:0]))
}

// AppendText appends the text form to b.
func (id Invocation) AppendText(b []byte) []byte {
	var t [InvocationLen]byte
	n := copy(t[:], invocationPrefix)
	// The numbers printed are the bytes read as little endian: that is what the
	// protocol's first implementation does, and ids must look alike everywhere.
	put62(t[n:n+width64], uint128{lo: binary.LittleEndian.Uint64(id[:8])})
	put62(t[n+width64:], uint128{hi: binary.LittleEndian.Uint64(id[16:]), lo: binary.LittleEndian.Uint64(id[8:16])})
	return append(b, t[:]...)
}

// ParseInvocation reads the text form.
func ParseInvocation(s string) (Invocation, error) {
	var id Invocation
	body, ok := strings.CutPrefix(s, "inv_")
	if !ok {
		return id, fmt.Errorf("%w: an invocation id starts with %q", errFormat, invocationPrefix)
	}
	if len(s) != InvocationLen {
		return id, fmt.Errorf("%w: an invocation id has %d characters, not %d", errFormat, InvocationLen, len(s))
	}
	if body[0] != '1' {
		return id, fmt.Errorf("%w: unrecognized codec version %q", errFormat, body[:1])
	}
	key, err := parse62(body[1 : 1+width64])
	if err == nil && key.hi != 0 {
		err = errOverflow
	}
	if err != nil {
		return id, fmt.Errorf("%w: %w", errFormat, err)
	}
	unique, err := parse62(body[1+width64:])
	if err != nil {
		return id, fmt.Errorf("%w: %w", errFormat, err)
	}
	binary.LittleEndian.PutUint64(id[:8], key.lo)
	binary.LittleEndian.PutUint64(id[8:16], unique.lo)
	binary.LittleEndian.PutUint64(id[16:], unique.hi)
	return id, nil
}

// Earlier is the id under which the result of an earlier life of id is kept for retries
// of the request that started it.
func Earlier(id Invocation, request uint64) Invocation {
	b := binary.BigEndian.AppendUint64(append([]byte("earlier,"), id[:]...), request)
	sum := sha256.Sum256(b)
	return NewInvocation(id.PartitionKey(), [16]byte(sum[:16]))
}

// RandomSeed is a number derived from the id: equal for all attempts of an
// invocation, different between invocations (service protocol, random seed).
func (id Invocation) RandomSeed() uint64 { return xxh3.Hash(id[:]) }

// HashKey is the partition key of everything that belongs to a key: an object or
// workflow key, an idempotency key, a scope.
func HashKey(key string) uint64 {
	var buf [64]byte
	return xxh3.Hash(append(append(buf[:0], key...), 0xff))
}
