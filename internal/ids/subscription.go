package ids

import (
	"encoding/binary"
	"fmt"
	"strings"
)

const subscriptionPrefix = "sub_1"

// NewSubscription prints 16 bytes, usually a ULID, as the id of an event subscription.
func NewSubscription(unique [16]byte) string {
	var b [len(subscriptionPrefix) + width128]byte
	copy(b[:], subscriptionPrefix)
	put62(b[len(subscriptionPrefix):], uint128{hi: binary.BigEndian.Uint64(unique[:8]), lo: binary.BigEndian.Uint64(unique[8:])})
	return string(b[:])
}

// CheckSubscription checks that s has the form of the id of an event subscription.
func CheckSubscription(s string) error {
	body, ok := strings.CutPrefix(s, "sub_")
	switch {
	case !ok:
		return fmt.Errorf("%w: a subscription id starts with %q", errFormat, subscriptionPrefix)
	case len(s) != len(subscriptionPrefix)+width128:
		return fmt.Errorf("%w: a subscription id has %d characters, not %d", errFormat, len(subscriptionPrefix)+width128, len(s))
	case body[0] != '1':
		return fmt.Errorf("%w: unrecognized codec version %q", errFormat, body[:1])
	}
	if _, err := parse62(body[1:]); err != nil {
		return fmt.Errorf("%w: %w", errFormat, err)
	}
	return nil
}
