package endpoint

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
)

// Further parts of HTTP/2 frames.
const (
	frameHeaders      = 0x1
	framePing         = 0x6
	frameWindow       = 0x8
	frameContinuation = 0x9
	flagAck           = 0x1
	flagEndHeaders    = 0x4
)

// appendFrame appends the header of a frame.
func appendFrame(b []byte, length int, kind, flags byte, stream uint32) []byte {
	return binary.BigEndian.AppendUint32(append(b, byte(length>>16), byte(length>>8), byte(length), kind, flags), stream)
}

// setLength sets the length in the header of a frame.
func setLength(b []byte, n int) { b[0], b[1], b[2] = byte(n>>16), byte(n>>8), byte(n) }

func appendSetting(b []byte, id http2.SettingID, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(id)), value)
}

func appendWindow(b []byte, stream uint32, n int) []byte {
	return binary.BigEndian.AppendUint32(appendFrame(b, 4, frameWindow, 0, stream), uint32(n))
}

func appendReset(b []byte, stream uint32, code http2.ErrCode) []byte {
	return binary.BigEndian.AppendUint32(appendFrame(b, 4, frameReset, 0, stream), uint32(code))
}

func appendPing(b []byte, flags byte, data [8]byte) []byte {
	return append(appendFrame(b, len(data), framePing, flags, 0), data[:]...)
}

// appendHeaders appends the frames of an encoded head.
func appendHeaders(b []byte, stream uint32, head []byte, flags byte) []byte {
	for kind := byte(frameHeaders); ; kind, flags = frameContinuation, 0 {
		part := head[:min(len(head), smallestMaxFrame)]
		if head = head[len(part):]; len(head) == 0 {
			flags |= flagEndHeaders
		}
		b = append(appendFrame(b, len(part), kind, flags, stream), part...)
		if len(head) == 0 {
			return b
		}
	}
}

// Entries of the static table of HPACK (RFC 7541, appendix A).
const (
	staticAuthority = 1
	staticGET       = 2
	staticPOST      = 3
	staticPath      = 4
	staticHTTP      = 6
	staticHTTPS     = 7
	indexed         = 0x80
	fieldOverhead   = 32 // in the size of a header list (RFC 9113, 10.5.1)
	// noTable sets the size of the table of recent fields to 0. Peers whose settings reduce that size
	// require such an update before the first field (RFC 7541, 4.2), although the table is not used.
	noTable = 0x20
)

// appendHead encodes the head of a request, without the tables and without compression: most of it is
// different in each request, and the little that the tables would save costs more than it brings. It
// also returns the size of the list of headers.
func appendHead(b []byte, r *Request) (_ []byte, size uint32, err error) {
	a := r.Address
	b = appendString(append(b, staticAuthority), a.Authority)
	switch r.Method {
	case http.MethodGet:
		b = append(b, indexed|staticGET)
	case http.MethodPost:
		b = append(b, indexed|staticPOST)
	default:
		b = appendString(append(b, staticGET), r.Method)
	}
	b = appendString(append(b, staticPath), r.Path)
	if a.Scheme == "https" {
		b = append(b, indexed|staticHTTPS)
	} else {
		b = append(b, indexed|staticHTTP)
	}
	size = uint32(len(":authority:method:path:scheme") + len(a.Authority) + len(r.Method) + len(r.Path) + len(a.Scheme) + 4*fieldOverhead)
	for name, values := range r.Header {
		name = strings.ToLower(name)
		if forbidden(name) {
			continue
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
				return nil, 0, fmt.Errorf("the request header %q is not valid", name)
			}
			size += uint32(len(name) + len(value) + fieldOverhead)
			b = appendString(appendString(append(b, 0), name), value)
		}
	}
	return b, size, nil
}

// appendString appends a string as HPACK encodes it without compression.
func appendString(b []byte, s string) []byte {
	const longest = 1<<7 - 1 // that fits into the first byte
	n := len(s)
	if n < longest {
		return append(append(b, byte(n)), s...)
	}
	b = append(b, longest)
	for n -= longest; n >= 1<<7; n >>= 7 {
		b = append(b, byte(n)|1<<7)
	}
	return append(append(b, byte(n)), s...)
}

// forbidden reports whether requests in HTTP/2 do not have a header, or have it in another form.
func forbidden(name string) bool {
	switch name {
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade", "host", "content-length":
		return true
	}
	return false
}
