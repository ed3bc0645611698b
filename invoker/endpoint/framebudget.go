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

	// updatesPerSent is how many updates of windows a HEADERS or DATA frame to the peer permits, besides those for its
	// data. Servers in Go whose window is exhausted send one per read, until it has grown to 4 KiB.
	updatesPerSent = 16
	// dataPerUpdate is how many bytes of data to the peer permit one. Servers that read a few bytes at a time collect
	// updates up to 4 KiB otherwise.
	dataPerUpdate = 16
	// maxUpdateCredit bounds the updates for data that the peer has not read yet.
	maxUpdateCredit = 1 << 20
)

// frameBudget counts the frames that a peer sends. It is used by the transport's reading goroutine. Updates of windows have
// a credit of their own, which is earned by what is sent to the peer.
type frameBudget struct {
	left     int                  // remaining payload of the current frame
	head     [frameHeaderLen]byte // of a frame that is split between reads
	have     int                  // bytes in head
	credit   int
	updates  int // credit of updates of windows
	refilled time.Time
}

func newFrameBudget(now time.Time) frameBudget {
	return frameBudget{credit: maxFrameCredit, updates: maxFrameCredit, refilled: now}
}

// add counts the frames in p, the next bytes. It returns false if a credit is exhausted.
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
		if b.head[frameTypeAt] == frameWindowUpdate {
			b.updates--
		} else {
			b.credit = min(b.credit-1+b.data()/dataPerCredit, maxFrameCredit)
		}
	}
	return b.sufficient()
}

func (b *frameBudget) sufficient() bool { return b.credit >= 0 && b.updates >= 0 }

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

// refill adds to the credits that are exhausted what was earned by time, and by frames that were sent to the peer, which it
// takes. It returns false if that is not enough.
func (b *frameBudget) refill(sent *earned, now time.Time) bool {
	byTime := now.Sub(b.refilled) * creditPerSecond / time.Second
	b.refilled = b.refilled.Add(byTime * time.Second / creditPerSecond)
	idle := int(min(byTime, maxFrameCredit))
	b.credit = min(b.credit+idle, maxFrameCredit)
	b.updates = max(min(b.updates+idle, maxFrameCredit), b.updates)
	if b.credit < 0 {
		b.credit = min(b.credit+sent.credit, maxFrameCredit)
		sent.credit = 0
	}
	if b.updates < 0 {
		b.updates += sent.updates
		sent.updates = 0
	}
	return b.sufficient()
}

// earned is what frames that were sent to a peer have earned.
type earned struct{ credit, updates int }

// add counts a HEADERS or DATA frame with that many bytes of data.
func (e *earned) add(data int) {
	e.credit += creditPerSent
	e.updates = min(e.updates+updatesPerSent+data/dataPerUpdate, maxUpdateCredit)
}
