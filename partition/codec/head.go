package codec

import (
	"platform/internal/ids"
	"platform/partition/machine"
)

// Head is the beginning of an invocation's record: enough to tell whether somebody
// who looks for invocations wants it.
type Head struct {
	ID     ids.Invocation
	Target machine.Target
	Status machine.Status
}

// headFields is the number of the last field of a head.
const headFields = 3

// HeadLen is how many bytes of what AppendInvocation wrote the head is. They are the
// record of an invocation that has nothing else.
func HeadLen(b []byte) int {
	r := reader{b: b}
	for {
		end := r.at
		if !r.next() || r.field > headFields {
			return end
		}
		r.skip()
	}
}

// DecodeHead reads the beginning of what AppendInvocation wrote, and nothing after
// it. Its strings point into b.
func DecodeHead(b []byte) (h Head, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			r.id(&h.ID)
		case 2:
			into(&r, &h.Target, readTarget)
		case 3:
			h.Status = machine.Status(r.u8())
		default: // fields are written in order
			return h, r.err
		}
	}
	return h, r.err
}
