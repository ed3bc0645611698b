package endpoint

import (
	"errors"
	"time"
)

// errFrameFlood means that a peer sent many frames with little or nothing in them, which cost as much as long ones. Flow
// control bounds only the data.
var errFrameFlood = errors.New("the endpoint sent too many HTTP/2 frames without content")

const (
	// frameCredit is the number of frames that a peer may send in addition to those that are paid for.
	frameCredit = 1000
	// framesPerSecond is how many the peer regains, for example for pings.
	framesPerSecond = 100
	// framesPerSent is how many a HEADERS or DATA frame to the peer pays for, such as the head and the end of the response.
	framesPerSent = 4
	// bytesPerFrame is how many bytes of data pay for a frame. A message has at least 8, and is sent in at most two
	// frames, its header and its payload.
	bytesPerFrame = 4
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
		kind := b.head[frameTypeAt]
		if kind == frameWindowUpdate {
			continue
		}
		b.credit--
		if kind == frameData && b.head[frameTypeAt+1]&flagPadded == 0 {
			b.credit = min(b.credit+b.left/bytesPerFrame, frameCredit)
		}
	}
	return b.credit >= 0
}

// refill adds what the peer has regained, also by frames that were sent to it. It returns false if that is not enough.
func (b *frameBudget) refill(sent int, now time.Time) bool {
	regained := now.Sub(b.refilled) * framesPerSecond / time.Second
	b.credit = min(b.credit+sent*framesPerSent+int(min(regained, frameCredit)), frameCredit)
	b.refilled = now
	return b.credit >= 0
}
