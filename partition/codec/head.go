package codec

import (
	"platform/internal/ids"
	"platform/partition/machine"
)

// Head is the prefix of an invocation's record: the fields that scans filter by.
type Head struct {
	ID     ids.Invocation
	Target machine.Target
	Status machine.Status
}

// lastHeadField is the last field of a head; fields are written in order.
const lastHeadField = fieldInvocationStatus

// HeadLen returns the length of the head of a record written by AppendInvocation. Those
// bytes are a valid record by themselves.
func HeadLen(b []byte) int {
	r := reader{b: b}
	for {
		end := r.at
		if !r.next() || r.field > lastHeadField {
			return end
		}
		r.skip()
	}
}

// DecodeHead decodes the head of a record written by AppendInvocation and ignores the
// rest. Its strings alias b.
func DecodeHead(b []byte) (h Head, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldInvocationID:
			r.id(&h.ID)
		case fieldInvocationTarget:
			decodeInto(&r, &h.Target, readTarget)
		case fieldInvocationStatus:
			h.Status = machine.Status(r.u8())
		default:
			return h, r.err
		}
	}
	return h, r.err
}
