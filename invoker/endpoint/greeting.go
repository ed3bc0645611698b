package endpoint

import (
	"bytes"
	"encoding/binary"
)

// greeting is the beginning of what a peer sends: in HTTP/2 one SETTINGS frame.
//
// A peer that speaks HTTP/1 is told apart here from one that breaks the rules of
// HTTP/2, which the transport would report alike: as a frame that is too large.
//
// The largest frame that the peer is ready to take is lowered to the least that the
// standard allows. The transport gives every stream a buffer of that size, half a
// megabyte with some servers, to write frames of a few hundred bytes from.
type greeting struct {
	seen   int // bytes so far
	header [frameHeaderLen]byte
	id     [2]byte // of the setting being read
}

const (
	frameHeaderLen     = 9
	frameTypeAt        = 3 // after the length
	settingsFrame      = 4
	settingLen         = 6 // identifier, 2 bytes, and value, 4 bytes
	settingMaxFrame    = 5
	smallestMaxFrame   = 16 << 10
	settingsBytesLimit = 1 << 10 // more is no greeting
)

// over reports whether the greeting has been read.
func (g *greeting) over() bool {
	return g.seen >= frameHeaderLen && (g.header[frameTypeAt] != settingsFrame || g.seen >= frameHeaderLen+g.length())
}

// foreign reports whether the peer began with something else than SETTINGS.
func (g *greeting) foreign() bool {
	return g.seen >= frameHeaderLen && g.header[frameTypeAt] != settingsFrame
}

// length is the length of the frame's payload.
func (g *greeting) length() int {
	var b [4]byte
	copy(b[1:], g.header[:frameTypeAt])
	return min(int(binary.BigEndian.Uint32(b[:])), settingsBytesLimit)
}

// isHTTP1 reports whether the very first bytes are those of HTTP/1.
func (g *greeting) isHTTP1(p []byte) bool {
	return g.seen == 0 && bytes.HasPrefix(p, http1Begin)
}

// http1Begin is how a response in HTTP/1 begins.
var http1Begin = []byte("HTTP/1")

// lowerFrameSize takes in the next bytes, and rewrites in place those of the
// setting in question.
func (g *greeting) lowerFrameSize(p []byte) {
	var least [4]byte
	binary.BigEndian.PutUint32(least[:], smallestMaxFrame)
	for i := range p {
		if g.over() {
			return
		}
		switch at := (g.seen - frameHeaderLen) % settingLen; {
		case g.seen < frameHeaderLen:
			g.header[g.seen] = p[i]
		case at < len(g.id):
			g.id[at] = p[i]
		case binary.BigEndian.Uint16(g.id[:]) == settingMaxFrame:
			p[i] = least[at-len(g.id)]
		}
		g.seen++
	}
}
