package protocol

import "google.golang.org/protobuf/encoding/protowire"

// Fields of a notification's failure.
const (
	fieldFailure  protowire.Number = 6 // of a notification
	fieldMetadata protowire.Number = 3 // of a failure
)

// ForVersion is the payload of a notification as an endpoint of that version is to
// see it: metadata of failures exist since protocol 6. The payload is not changed;
// one without such metadata is returned as it is.
func ForVersion(v Version, payload []byte) []byte {
	if v >= V6 {
		return payload
	}
	return replaceField(payload, fieldFailure, func(failure []byte) ([]byte, bool) {
		bare := replaceField(failure, fieldMetadata, func([]byte) ([]byte, bool) { return nil, false })
		return bare, true
	})
}

// replaceField replaces the values of a field of bytes, or drops it where with
// returns false. A payload that is malformed is returned as it is, and so is one
// without the field.
func replaceField(payload []byte, field protowire.Number, with func([]byte) ([]byte, bool)) []byte {
	var out []byte
	found := false
	for rest := payload; len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return payload
		}
		m := protowire.ConsumeFieldValue(number, kind, rest[n:])
		if m < 0 {
			return payload
		}
		if number == field && kind == protowire.BytesType {
			if !found {
				found = true
				out = append(make([]byte, 0, len(payload)), payload[:len(payload)-len(rest)]...)
			}
			old, _ := protowire.ConsumeBytes(rest[n:])
			if value, keep := with(old); keep {
				out = protowire.AppendBytes(protowire.AppendTag(out, number, kind), value)
			}
		} else if found {
			out = append(out, rest[:n+m]...)
		}
		rest = rest[n+m:]
	}
	if !found {
		return payload
	}
	return out
}
