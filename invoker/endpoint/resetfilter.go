package endpoint

import "encoding/binary"

// Some SDKs end their response together with the last message, before the end of the
// request can reach them. The transport then resets the stream with NO_ERROR. Servers count
// resets, as a defense against floods of them, and close the connection after some
// hundreds. So such a reset is replaced by the end of the request body.

// Layout of HTTP/2 frames (RFC 9113, 4.1 and 6).
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameReset        = 0x3
	frameWindowUpdate = 0x8
	frameContinuation = 0x9
	flagEndStream     = 0x1
	flagEndHeaders    = 0x4
	flagPadded        = 0x8
	resetLen          = frameHeaderLen + 4
	prefaceLen        = 24
)

// resetFilter parses the frames that are written to a connection.
type resetFilter struct {
	preface int                  // bytes of the connection preface seen so far
	left    int                  // remaining payload of the current frame
	head    [frameHeaderLen]byte // of a frame that is split between writes
	have    int                  // bytes in head
	headers bool                 // the current frame is not the last one of its headers
	earned  earned               // by the frames sent, for frameBudget
}

// pass appends p, which the transport writes, to b.
func (f *resetFilter) pass(b, p []byte) []byte {
	for len(p) > 0 {
		n := 0
		switch {
		case f.preface < prefaceLen:
			n = min(prefaceLen-f.preface, len(p))
			f.preface += n
		case f.left > 0:
			n = min(f.left, len(p))
			f.left -= n
		case f.have == 0 && isNoErrorReset(p):
			b = append(b, 0, 0, 0, frameData, flagEndStream)
			b = append(b, p[5:frameHeaderLen]...)
			p = p[resetLen:]
			continue
		default:
			n = f.begin(p)
		}
		b, p = append(b, p[:n]...), p[n:]
	}
	return b
}

// begin parses a frame header, or as much of it as is available.
func (f *resetFilter) begin(p []byte) int {
	n := copy(f.head[f.have:], p)
	if f.have += n; f.have == frameHeaderLen {
		f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
		f.have = 0
		kind := f.head[frameTypeAt]
		f.headers = (kind == frameHeaders || kind == frameContinuation) && f.head[frameTypeAt+1]&flagEndHeaders == 0
		switch kind {
		case frameData:
			f.earned.add(f.left)
		case frameHeaders:
			f.earned.add(0)
		}
	}
	return n
}

// betweenFrames reports whether another frame may follow what has been written.
func (f *resetFilter) betweenFrames() bool {
	return f.preface == prefaceLen && f.left == 0 && f.have == 0 && !f.headers
}

// isNoErrorReset reports whether p begins with a complete RST_STREAM frame with the error
// code NO_ERROR.
func isNoErrorReset(p []byte) bool {
	return len(p) >= resetLen && p[3] == frameReset && binary.BigEndian.Uint32(p[frameHeaderLen:]) == 0
}
