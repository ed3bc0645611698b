package journal

import "google.golang.org/protobuf/encoding/protowire"

// fieldName is the number of the display name in every command.
const fieldName protowire.Number = 12

// NameOf is the display name that the handler gave a command, empty if none or if
// the entry is a notification.
func NameOf(e Entry) string {
	if !e.Type.IsCommand() {
		return ""
	}
	name := ""
	for b := e.Payload; len(b) > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return ""
		}
		b = b[n:]
		if number == fieldName && kind == protowire.BytesType {
			text, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return ""
			}
			name, b = string(text), b[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return ""
		}
		b = b[n:]
	}
	return name
}
