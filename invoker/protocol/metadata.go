package protocol

import "google.golang.org/protobuf/encoding/protowire"

// Field numbers of failures.
const (
	fieldFailure  protowire.Number = 6 // of a notification
	fieldMetadata protowire.Number = 3 // of a failure
)

// ForVersion returns the payload of a notification for an endpoint of version v: metadata of
// failures exist since protocol 6 and are removed for older versions. It does not modify
// payload, and returns it unchanged if there is nothing to remove.
func ForVersion(v Version, payload []byte) []byte {
	if v >= V6 {
		return payload
	}
	return replaceField(payload, fieldFailure, func(failure []byte) ([]byte, bool) {
		bare := replaceField(failure, fieldMetadata, func([]byte) ([]byte, bool) { return nil, false })
		return bare, true
	})
}

// replaceField replaces the values of a bytes field, or removes it where with returns false.
// A malformed payload and one without the field are returned unchanged.
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
