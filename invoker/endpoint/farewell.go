package endpoint

import "encoding/binary"

// Some SDKs end their response together with the last message, before the end of the
// request can reach them. The transport then resets the stream, politely, with
// NO_ERROR. Servers count resets, to defend themselves against floods of them, and
// after some hundreds they close the connection on everybody. So a polite reset is
// sent as what it stands for: the end of the request body.

// Layout of HTTP/2 frames (RFC 9113, 4.1 and 6).
const (
	frameHead     = 9
	frameData     = 0x0
	frameReset    = 0x3
	flagEndStream = 0x1
	resetLen      = frameHead + 4
	prefaceLen    = 24
)

// farewell follows the frames that are sent on a connection.
type farewell struct {
	preface int             // bytes of the connection preface that have passed
	left    int             // bytes of the current frame's payload to come
	head    [frameHead]byte // of a frame that is cut by the end of a write
	have    int             // bytes in head
}

// pass appends p, what the transport writes, to b.
func (f *farewell) pass(b, p []byte) []byte {
	for len(p) > 0 {
		n := 0
		switch {
		case f.preface < prefaceLen:
			n = min(prefaceLen-f.preface, len(p))
			f.preface += n
		case f.left > 0:
			n = min(f.left, len(p))
			f.left -= n
		case f.have == 0 && politeReset(p):
			b = append(b, 0, 0, 0, frameData, flagEndStream)
			b = append(b, p[5:frameHead]...)
			p = p[resetLen:]
			continue
		default:
			n = f.begin(p)
		}
		b, p = append(b, p[:n]...), p[n:]
	}
	return b
}

// begin takes in the head of a frame, as much of it as is there.
func (f *farewell) begin(p []byte) int {
	n := copy(f.head[f.have:], p)
	if f.have += n; f.have == frameHead {
		f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
		f.have = 0
	}
	return n
}

// politeReset reports whether p begins with a whole RST_STREAM frame whose error code
// is NO_ERROR.
func politeReset(p []byte) bool {
	return len(p) >= resetLen && p[3] == frameReset && binary.BigEndian.Uint32(p[frameHead:]) == 0
}
