package endpoint

import (
	"errors"
	"time"
)

// errFrameFlood means that a peer sent many frames with little or nothing in them, which cost as much as long ones. Flow
// control bounds only the data.
var errFrameFlood = errors.New("the endpoint sent too many HTTP/2 frames without content")

// A peer has a credit of frames. Data that it sends, what is sent to it, and time earn more. The figures are far above
// what known servers need: if a connection is closed by mistake, up to 128 attempts fail.
const (
	maxFrameCredit  = 4000 // also that of a new connection
	creditPerSecond = 200  // for example for pings

	// creditPerSent is what a HEADERS or DATA frame to the peer earns, such as for the head and the end of the response.
	creditPerSent = 4
	// dataPerCredit is how many bytes of data from the peer earn one. A message has at least 8, and is sent in at most
	// two frames, its header and its payload.
	dataPerCredit = 4
	// maxPadding is the maximum length of the padding of a DATA frame, including the byte with its length. It earns nothing.
	maxPadding = 256
)

// frameBudget counts the frames that a peer sends. It is used by the transport's reading goroutine. Updates of windows are
// not counted: a server may send two of them for each read of its handler, so any number for what it is sent.
type frameBudget struct {
	left     int                  // remaining payload of the current frame
	head     [frameHeaderLen]byte // of a frame that is split between reads
	have     int                  // bytes in head
	credit   int
	refilled time.Time
}

// add counts the frames in p, the next bytes. It returns false if the credit is exhausted.
func (b *frameBudget) add(p []byte) bool {
	for len(p) > 0 {
		if b.left > 0 {
			n := min(b.left, len(p))
			b.left -= n
			p = p[n:]
			continue
		}
		n := copy(b.head[b.have:], p)
		p = p[n:]
		if b.have += n; b.have < frameHeaderLen {
			break
		}
		b.have = 0
		b.left = int(b.head[0])<<16 | int(b.head[1])<<8 | int(b.head[2])
		if b.head[frameTypeAt] != frameWindowUpdate {
			b.credit = min(b.credit-1+b.data()/dataPerCredit, maxFrameCredit)
		}
	}
	return b.credit >= 0
}

// data is the minimum length of the data in the frame that begins.
func (b *frameBudget) data() int {
	switch {
	case b.head[frameTypeAt] != frameData:
		return 0
	case b.head[frameTypeAt+1]&flagPadded != 0:
		return max(b.left-maxPadding, 0)
	}
	return b.left
}

// refill adds what was earned by frames that were sent to the peer, and by time. It returns false if that is not enough.
func (b *frameBudget) refill(earned int, now time.Time) bool {
	byTime := now.Sub(b.refilled) * creditPerSecond / time.Second
	b.refilled = b.refilled.Add(byTime * time.Second / creditPerSecond)
	b.credit = min(b.credit+earned+int(min(byTime, maxFrameCredit)), maxFrameCredit)
	return b.credit >= 0
}
