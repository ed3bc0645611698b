package ids

import (
	"encoding/binary"
	"fmt"
	"strings"
)

const vqueuePrefix = "vq_1"

// VQueue identifies a virtual queue: partition key (8 bytes, big endian), then the
// hash of what its invocations share. The zero value identifies nothing.
type VQueue [24]byte

// OfVQueue is the id of the queue of a service's invocations that share a scope and a
// limit key, or that wait for the key of one object; what does not apply is empty.
func OfVQueue(scope, limitKey, service, key string) VQueue {
	var id VQueue
	binary.BigEndian.PutUint64(id[:8], Route(scope, key))
	unique := uniqueOf("vq", "", scope, limitKey, service, key)
	copy(id[8:], unique[:])
	return id
}

// PartitionKey is the number that routes the queue to its partition.
func (id VQueue) PartitionKey() uint64 { return binary.BigEndian.Uint64(id[:8]) }

// IsZero reports whether id identifies nothing.
func (id VQueue) IsZero() bool { return id == VQueue{} }

// String is the text form, "vq_1" followed by 33 base62 characters.
func (id VQueue) String() string {
	text := Invocation(id).String()
	return vqueuePrefix + text[len(invocationPrefix):]
}

// ParseVQueue reads the text form.
func ParseVQueue(s string) (VQueue, error) {
	body, ok := strings.CutPrefix(s, "vq_")
	if !ok {
		return VQueue{}, fmt.Errorf("%w: the id of a queue starts with %q", errFormat, vqueuePrefix)
	}
	if n := len(vqueuePrefix) + width64 + width128; len(s) != n {
		return VQueue{}, fmt.Errorf("%w: the id of a queue has %d characters, not %d", errFormat, n, len(s))
	}
	id, err := ParseInvocation("inv_" + body)
	return VQueue(id), err
}
