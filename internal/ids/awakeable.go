package ids

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
)

const awakeablePrefix = "sign_1"

// FirstAwakeable is the lowest signal index that belongs to an awakeable; lower
// ones are built in (service protocol, awakeable ids).
const FirstAwakeable = 17

// Awakeable identifies a signal of an invocation, as handlers hand it out to the
// world.
type Awakeable struct {
	Invocation Invocation
	Signal     uint32
}

// String is the text form, "sign_1" and the base64url of both parts.
func (a Awakeable) String() string {
	b := binary.BigEndian.AppendUint32(a.Invocation[:], a.Signal)
	return awakeablePrefix + base64.RawURLEncoding.EncodeToString(b)
}

// ParseAwakeable reads the text form, with or without padding.
func ParseAwakeable(s string) (Awakeable, error) {
	body, ok := strings.CutPrefix(s, awakeablePrefix)
	if !ok {
		return Awakeable{}, fmt.Errorf("%w: an awakeable id starts with %q", errFormat, awakeablePrefix)
	}
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(body, "="))
	if err != nil {
		return Awakeable{}, fmt.Errorf("%w: %w", errFormat, err)
	}
	if len(b) != 28 {
		return Awakeable{}, fmt.Errorf("%w: an awakeable id holds 28 bytes, not %d", errFormat, len(b))
	}
	return Awakeable{Invocation(b[:24]), binary.BigEndian.Uint32(b[24:])}, nil
}
