package ids

import (
	"encoding/binary"
	"fmt"
	"strings"
)

const deploymentPrefix = "dp_1"

// Deployment identifies a registered deployment by its text form, "dp_1" and 22
// base62 characters of a time-ordered number.
type Deployment string

// NewDeployment prints 16 bytes, usually a ULID, as a deployment id.
func NewDeployment(unique [16]byte) Deployment {
	var b [len(deploymentPrefix) + width128]byte
	copy(b[:], deploymentPrefix)
	put62(b[len(deploymentPrefix):], uint128{hi: binary.BigEndian.Uint64(unique[:8]), lo: binary.BigEndian.Uint64(unique[8:])})
	return Deployment(b[:])
}

// ParseDeployment checks that s has the form of a deployment id.
func ParseDeployment(s string) (Deployment, error) {
	body, ok := strings.CutPrefix(s, "dp_")
	switch {
	case !ok:
		return "", fmt.Errorf("%w: a deployment id starts with %q", errFormat, deploymentPrefix)
	case len(s) != len(deploymentPrefix)+width128:
		return "", fmt.Errorf("%w: a deployment id has %d characters, not %d", errFormat, len(deploymentPrefix)+width128, len(s))
	case body[0] != '1':
		return "", fmt.Errorf("%w: unrecognized codec version %q", errFormat, body[:1])
	}
	if _, err := parse62(body[1:]); err != nil {
		return "", fmt.Errorf("%w: %w", errFormat, err)
	}
	return Deployment(s), nil
}
