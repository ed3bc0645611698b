package endpoint

import (
	"bytes"
	"encoding/binary"
)

// greeting parses the beginning of what a peer sends: in HTTP/2, a SETTINGS frame.
//
// It distinguishes a peer that speaks HTTP/1 from one that violates HTTP/2; the transport
// would report both as a frame that is too large.
//
// It lowers the peer's SETTINGS_MAX_FRAME_SIZE to the minimum of the standard. The
// transport allocates a buffer of that size per stream, half a megabyte with some servers,
// to write frames of a few hundred bytes.
type greeting struct {
	seen   int // bytes parsed so far
	header [frameHeaderLen]byte
	id     [2]byte // of the setting being read
}

const (
	frameHeaderLen     = 9
	frameTypeAt        = 3 // follows the length
	settingsFrame      = 4
	settingLen         = 6 // identifier, 2 bytes, and value, 4 bytes
	settingMaxFrame    = 5
	smallestMaxFrame   = 16 << 10
	settingsBytesLimit = 1 << 10 // larger frames are not parsed to the end
)

// over reports whether the whole greeting has been parsed.
func (g *greeting) over() bool {
	return g.seen >= frameHeaderLen && (g.header[frameTypeAt] != settingsFrame || g.seen >= frameHeaderLen+g.length())
}

// foreign reports whether the first frame is not SETTINGS.
func (g *greeting) foreign() bool {
	return g.seen >= frameHeaderLen && g.header[frameTypeAt] != settingsFrame
}

// length is the length of the payload, limited to settingsBytesLimit.
func (g *greeting) length() int {
	var b [4]byte
	copy(b[1:], g.header[:frameTypeAt])
	return min(int(binary.BigEndian.Uint32(b[:])), settingsBytesLimit)
}

// isHTTP1 reports whether the first bytes are a response in HTTP/1.
func (g *greeting) isHTTP1(p []byte) bool {
	return g.seen == 0 && bytes.HasPrefix(p, http1Begin)
}

// http1Begin is the beginning of an HTTP/1 response.
var http1Begin = []byte("HTTP/1")

// lowerFrameSize parses the next bytes, and overwrites the maximum frame size in place.
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
