package crafted

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	mathrand "math/rand/v2"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	nodepb "platform/proto/node"
)

// generator makes requests, which depend on its seed only.
type generator struct {
	*mathrand.Rand
	methods, paths, bodies []string // of valid requests of the listener
	node                   bool     // requests of the protocols between nodes as well
	identity               [16]byte // address of the node in the gossip
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: mathrand.New(mathrand.NewPCG(seed, 17))} //nolint:gosec // repeatable
}

func pick[T any](g *generator, list []T) T { return list[g.IntN(len(list))] }

func (g *generator) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

// length is mostly short, and sometimes at or above a limit.
func (g *generator) length() int {
	return pick(g, []int{0, 1, 2, 7, 64, 255, 256, 1000, 4095, 4096, 8192, 65535, 65536, 1 << 20, 1<<20 + 1})
}

var oddTexts = []string{
	"", " ", "\t", "\x00", "%00", "%2f", "%2F..%2f", "..", "../../etc/passwd", "//", "/./", ";", "#x", "?", "??a=&&b", "%", "%zz", "%c0%af", "\xff\xfe", "é", "\u202e", "*", ":", "@",
	"'; drop table state; --", "{{7*7}}", "${jndi:ldap://a}", "<script>", "-1", "0", "1e309", "9223372036854775808", "18446744073709551616", "NaN", "null", "true", "[]", "{}", "inv_", "dp_", "sign_1", "vq_",
	"inv_1000000000000000000000000000000000000000", "Counter", "Counter/a/add", "a b", "a\tb", "a\r\nX-Injected: 1", "a\nb", "plt_aaaaaaaaaaaaaaaa_" + "b", "Bearer ", "0x10", "+1", "1_000", "\\", "\"", "`",
}

func (g *generator) text() string {
	switch g.IntN(6) {
	case 0:
		return strings.Repeat(pick(g, oddTexts), g.length()%5000)
	case 1:
		return string(g.bytes(g.IntN(40)))
	case 2:
		return pick(g, oddTexts) + pick(g, oddTexts)
	}
	return pick(g, oddTexts)
}

func (g *generator) method() string {
	switch g.IntN(6) {
	case 0:
		return pick(g, []string{"", "G", "get", "CONNECT", "TRACE", "OPTIONS", "PRI", "PROPFIND", "GET\x00", "GE T", strings.Repeat("A", 70_000), "HEAD", "PURGE", "M-SEARCH", "PATCH\t"})
	case 1:
		return pick(g, []string{"GET", "POST", "PUT", "DELETE", "PATCH"})
	}
	return pick(g, g.methods)
}

// target is a path with query, in one of the forms of HTTP or none of them.
func (g *generator) target() string {
	path := pick(g, g.paths)
	for range g.IntN(3) { // parameters and segments
		if i, j := strings.Index(path, "{"), strings.Index(path, "}"); i >= 0 && j > i {
			path = path[:i] + g.text() + path[j+1:]
		}
	}
	switch g.IntN(14) {
	case 0:
		return "http://" + g.text() + path
	case 1:
		return g.text()
	case 2:
		return "*"
	case 3:
		return path + "?" + strings.Repeat(g.text()+"="+g.text()+"&", g.IntN(200))
	case 4:
		return strings.ReplaceAll(path, "/", pick(g, []string{"//", "/./", "/../", "%2f", "\\", "/%2e%2e/"}))
	case 5:
		return path + strings.Repeat("/"+g.text(), g.IntN(50))
	case 6:
		return "/" + strings.Repeat("a", g.length())
	case 7:
		return path + "?" + pick(g, []string{"limit", "cursor", "status", "service", "scope", "filter", "delay", "topics", "consistency", "dry_run", "force", "callback_token", "return"}) + "=" + g.text()
	}
	return path
}

func (g *generator) headers() string {
	var b strings.Builder
	for range g.IntN(8) {
		switch g.IntN(16) {
		case 0:
			fmt.Fprintf(&b, "Content-Length: %s\r\n", pick(g, []string{"0", "-1", "+5", "5, 5", "5, 6", "99999999999999999999", "0x5", " 5 ", "1073741824"}))
		case 1:
			fmt.Fprintf(&b, "Transfer-Encoding: %s\r\n", pick(g, []string{"chunked", "Chunked", "identity", "gzip, chunked", "chunked, chunked", "\vchunked", "xchunked"}))
		case 2:
			fmt.Fprintf(&b, "Host: %s\r\n", g.text())
		case 3:
			fmt.Fprintf(&b, "Connection: %s\r\n", pick(g, []string{"close", "keep-alive", "upgrade", "Upgrade, HTTP2-Settings", "x-platform-principal", "Content-Length"}))
		case 4:
			fmt.Fprintf(&b, "Upgrade: %s\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n", pick(g, []string{"websocket", "h2c", "TLS/1.0", "foo"}))
		case 5:
			fmt.Fprintf(&b, "Expect: %s\r\n", pick(g, []string{"100-continue", "200-ok", ""}))
		case 6:
			fmt.Fprintf(&b, "Authorization: %s\r\n", pick(g, []string{"Bearer " + g.text(), "Basic YTpi", "Bearer plt_aaaaaaaaaaaaaaaa_" + strings.Repeat("a", 52), "Bearer eyJhbGciOiJub25lIn0.e30."}))
		case 7:
			fmt.Fprintf(&b, "Content-Encoding: %s\r\n", pick(g, []string{"gzip", "deflate", "br", "identity, gzip"}))
		case 8:
			fmt.Fprintf(&b, "Content-Type: %s\r\n", pick(g, []string{"application/json", "text/plain", "application/json; charset=utf-16", "multipart/form-data; boundary=", "application/grpc", g.text()}))
		case 9:
			fmt.Fprintf(&b, "%s: %s\r\n", pick(g, []string{"idempotency-key", "traceparent", "tracestate", "x-platform-principal", "x-restate-ingress-path", "limit-key", "priority", "delay", "cookie", "origin", "sec-fetch-site", "x-http-method-override", "accept", "accept-encoding", "range", "if-none-match", "x-forwarded-for", "x-request-id", "te"}), g.text())
		case 10:
			b.WriteString(strings.Repeat("X-Many: 1\r\n", g.IntN(3000)))
		case 11:
			fmt.Fprintf(&b, "X-Long: %s\r\n", strings.Repeat("v", g.length()))
		case 12:
			fmt.Fprintf(&b, "%s: %s\r\n", g.text(), g.text())
		case 13:
			b.WriteString(pick(g, []string{"X: y\n", "X\r\n", ": z\r\n", " folded\r\n", "X:\r Y\r\n", "\x00: 1\r\n"}))
		case 14:
			fmt.Fprintf(&b, "Trailer: %s\r\n", pick(g, []string{"Content-Length", "Host", "X"}))
		case 15:
			fmt.Fprintf(&b, "Accept: %s\r\n", pick(g, []string{"text/event-stream", "application/vnd.apache.arrow.stream", "*/*;q=" + g.text()}))
		}
	}
	return b.String()
}

func (g *generator) body() string {
	body := pick(g, g.bodies)
	switch g.IntN(12) {
	case 0:
		return strings.Repeat("[", g.length())
	case 1:
		return strings.Repeat(`{"a":`, g.length()%100_000)
	case 2:
		return `{"query":"` + strings.Repeat("(", g.IntN(3000)) + `"}`
	case 3:
		return string(g.bytes(g.length()))
	case 4:
		return strings.ReplaceAll(body, `"`, g.text())
	case 5:
		return body[:g.IntN(len(body)+1)]
	case 6:
		return body + body
	case 7:
		return strings.Replace(body, ":", ":"+pick(g, []string{"1e999", "-0", "00", "\"\\ud800\"", "[[]]", "9e-99"})+",\"x\":", 1)
	}
	return body
}

// one is a request of HTTP/1.
func (g *generator) one() []byte {
	var b bytes.Buffer
	version := "HTTP/1.1"
	if g.IntN(10) == 0 {
		version = pick(g, []string{"HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/3", "http/1.1", "HTTP/1.1 ", "HTTP/11", "", "ICY"})
	}
	fmt.Fprintf(&b, "%s %s %s\r\n", g.method(), g.target(), version)
	if g.IntN(8) > 0 {
		b.WriteString("Host: localhost\r\n")
	}
	b.WriteString(g.headers())
	body := g.body()
	switch g.IntN(5) {
	case 0:
		b.WriteString("\r\n" + body)
	case 1: // chunks
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		for len(body) > 0 {
			n := 1 + g.IntN(len(body))
			fmt.Fprintf(&b, "%x%s\r\n%s\r\n", n, pick(g, []string{"", "", "", ";ext=1", " ", "\x00"}), body[:n])
			body = body[n:]
		}
		b.WriteString(pick(g, []string{"0\r\n\r\n", "0\r\nX: y\r\n\r\n", "", "ffffffffffffffff\r\n", "-1\r\n\r\n", "0\r\n"}))
	default:
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body)+pick(g, []int{0, 0, 0, 0, 1, -1, 1000})*min(1, len(body)), body)
	}
	return b.Bytes()
}

// damaged changes a few bytes of a request.
func (g *generator) damaged(b []byte) []byte {
	for range 1 + g.IntN(4) {
		if len(b) == 0 {
			return b
		}
		at := g.IntN(len(b))
		switch g.IntN(4) {
		case 0:
			b[at] ^= 1 << g.IntN(8)
		case 1:
			b = append(b[:at:at], b[min(len(b), at+1+g.IntN(8)):]...)
		case 2:
			b = append(append(b[:at:at], g.bytes(1+g.IntN(8))...), b[at:]...)
		case 3:
			b = b[:at]
		}
	}
	return b
}

// two is a connection of HTTP/2.
func (g *generator) two() []byte {
	var b bytes.Buffer
	b.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&b, nil)
	f.AllowIllegalWrites = true
	if g.IntN(10) > 0 {
		_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: pick(g, []uint32{0, 1, 65535, 1 << 31})}, http2.Setting{ID: http2.SettingID(g.IntN(20)), Val: g.Uint32()})
	}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	stream := uint32(1)
	for range 1 + g.IntN(8) {
		switch g.IntN(12) {
		case 0, 1, 2, 3:
			block.Reset()
			g.fields(encoder)
			end := g.IntN(4) > 0
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: end, EndStream: g.IntN(2) == 0, PadLength: uint8(g.IntN(256))})
			if !end {
				for range g.IntN(50) {
					_ = f.WriteContinuation(stream, g.IntN(20) == 0, g.bytes(g.IntN(100)))
				}
			}
			_ = f.WriteData(stream, g.IntN(3) > 0, nil)
			stream += pick(g, []uint32{2, 2, 2, 0, 1})
		case 4:
			data := []byte(g.body())
			_ = f.WriteDataPadded(stream, g.IntN(2) == 0, data[:min(len(data), 16384)], make([]byte, g.IntN(255)))
		case 5:
			for range g.IntN(300) {
				_ = f.WriteRSTStream(1+2*uint32(g.IntN(50)), http2.ErrCode(g.Uint32()))
			}
		case 6:
			for range g.IntN(300) {
				_ = f.WritePing(g.IntN(2) == 0, [8]byte(g.bytes(8)))
			}
		case 7:
			for range g.IntN(100) {
				_ = f.WriteSettings()
			}
		case 8:
			_ = f.WriteWindowUpdate(uint32(g.IntN(5)), pick(g, []uint32{0, 1, 1<<31 - 1, 1 << 31}))
		case 9:
			_ = f.WriteRawFrame(http2.FrameType(g.IntN(16)), http2.Flags(g.IntN(256)), g.Uint32N(1000), g.bytes(pick(g, []int{0, 1, 4, 5, 8, 9, 100, 16384, 16385})))
		case 10:
			_ = f.WritePriority(g.Uint32N(20), http2.PriorityParam{StreamDep: g.Uint32N(20), Weight: uint8(g.IntN(256)), Exclusive: g.IntN(2) == 0})
		case 11:
			_ = f.WriteGoAway(g.Uint32(), http2.ErrCode(g.Uint32()), []byte(g.text()))
		}
	}
	return b.Bytes()
}

// fields writes the pseudo headers and headers of a request.
func (g *generator) fields(e *hpack.Encoder) {
	field := func(name, value string) { _ = e.WriteField(hpack.HeaderField{Name: name, Value: value}) }
	if g.IntN(8) > 0 {
		field(":method", g.method())
	}
	if g.IntN(8) > 0 {
		field(":path", g.target())
	}
	if g.IntN(8) > 0 {
		field(":scheme", pick(g, []string{"http", "https", "", "ftp", g.text()}))
	}
	if g.IntN(8) > 0 {
		field(":authority", pick(g, []string{"localhost", "", g.text()}))
	}
	for range g.IntN(6) {
		switch g.IntN(8) {
		case 0:
			field(pick(g, []string{":path", ":method", ":status", ":protocol", ":authority", ":x", ""}), g.text())
		case 1:
			field(pick(g, []string{"connection", "transfer-encoding", "upgrade", "keep-alive", "host", "Host", "te"}), g.text())
		case 2:
			field("content-length", pick(g, []string{"0", "-1", "5", "99999999999999"}))
		case 3:
			for range g.IntN(1000) {
				field("cookie", "a=b")
			}
		case 4:
			field("x-long", strings.Repeat("v", g.length()%200_000))
		default:
			field(pick(g, []string{"content-type", "authorization", "origin", "idempotency-key", "x-platform-principal", "grpc-timeout", "grpc-encoding"}), g.text())
		}
	}
	if g.node {
		field("content-type", "application/grpc")
	}
}

// call is a connection of HTTP/2 with a request of a node, whose message is random.
func (g *generator) call() []byte {
	var b bytes.Buffer
	b.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&b, nil)
	f.AllowIllegalWrites = true
	_ = f.WriteSettings()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	method := pick(g, rpcs())
	for name, value := range map[string]string{":method": "POST", ":scheme": "http", ":path": fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name()), ":authority": "n1"} {
		_ = encoder.WriteField(hpack.HeaderField{Name: name, Value: value})
	}
	_ = encoder.WriteField(hpack.HeaderField{Name: "content-type", Value: "application/grpc"})
	_ = encoder.WriteField(hpack.HeaderField{Name: "te", Value: "trailers"})
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	for range 1 + g.IntN(4) {
		message := g.message(method.Input(), 3)
		if g.IntN(3) == 0 {
			message = g.damaged(message)
		}
		frame := binary.BigEndian.AppendUint32([]byte{byte(pick(g, []int{0, 0, 0, 0, 1, 7}))}, uint32(len(message)+pick(g, []int{0, 0, 0, 0, 1, 1 << 29})))
		frame = append(frame, message...)
		_ = f.WriteData(1, false, frame[:min(len(frame), 16384)])
	}
	_ = f.WriteData(1, true, nil)
	return b.Bytes()
}

// rpcs are all methods that nodes serve to others.
func rpcs() (all []protoreflect.MethodDescriptor) {
	protoregistry.GlobalFiles.RangeFilesByPackage(nodepb.File_proto_node_cluster_proto.Package(), func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			for j := range file.Services().Get(i).Methods().Len() {
				all = append(all, file.Services().Get(i).Methods().Get(j))
			}
		}
		return true
	})
	return all
}

// message is an encoded message with random values in its fields.
func (g *generator) message(d protoreflect.MessageDescriptor, depth int) (b []byte) {
	tag := func(f protoreflect.FieldDescriptor, wire uint64) {
		b = binary.AppendUvarint(b, uint64(f.Number())<<3|wire)
	}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if g.IntN(3) == 0 {
			continue
		}
		for range pick(g, []int{1, 1, 1, 2, 5}) {
			switch f.Kind() {
			case protoreflect.MessageKind:
				if depth > 0 {
					inner := g.message(f.Message(), depth-1)
					tag(f, 2)
					b = append(binary.AppendUvarint(b, uint64(len(inner))), inner...)
				}
			case protoreflect.StringKind, protoreflect.BytesKind:
				text := pick(g, []string{"localcluster", "n1", "n2", "http://127.0.0.1:9/", g.text(), string(g.bytes(g.IntN(64)))})
				tag(f, 2)
				b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
			case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
				tag(f, 1)
				b = append(b, g.bytes(8)...)
			case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
				tag(f, 5)
				b = append(b, g.bytes(4)...)
			default:
				tag(f, 0)
				b = binary.AppendUvarint(b, pick(g, []uint64{0, 1, 2, 3, 1 << 31, 1<<63 - 1, 1<<64 - 1, g.Uint64()}))
			}
		}
	}
	return b
}

// gossip is a stream of the gossip, or the content of a packet.
func (g *generator) gossip(packet bool) []byte {
	var b []byte
	if packet {
		b = append([]byte{byte(pick(g, []int{1, 1, 1, 2, 0}))}, g.identity[:]...)
	} else {
		b = append([]byte("GSP1"), sha256Prefix("cluster\x00localcluster")...)
		b = append(append(b, g.identity[:]...), g.bytes(16)...)
	}
	switch g.IntN(4) {
	case 0: // a compressed or nested message
		b = append(b, pick(g, []byte{7, 9, 12}))
		b = append(b, g.bytes(g.IntN(300))...)
	case 1: // a full exchange of states that announces much
		b = append(b, 6, 0x83, 0xa5)
		b = append(b, "Nodes\xce"...)
		b = append(b, 0x7f, 0xff, 0xff, 0xff)
		b = append(b, g.bytes(g.IntN(100))...)
	case 2:
		b = append(b, byte(g.IntN(20)))
		b = append(b, g.bytes(g.IntN(1000))...)
	case 3:
		b = append(b, byte(g.IntN(14)), 0x81, 0xa4)
		b = append(b, pick(g, []string{"Node", "Meta", "Addr", "Name"})...)
		b = append(b, 0xdb)
		b = append(b, g.bytes(4+g.IntN(60))...)
	}
	return b
}

func sha256Prefix(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:16]
}

// next is the next request.
func (g *generator) next() []byte {
	kind := g.IntN(20)
	switch {
	case kind == 0:
		return g.bytes(g.IntN(2000))
	case kind == 1: // the beginning of TLS, as of a wrong port
		return append([]byte{0x16, 3, 1, byte(g.IntN(256)), byte(g.IntN(256))}, g.bytes(g.IntN(600))...)
	case kind < 6:
		return g.damaged(g.two())
	case kind < 9:
		return g.two()
	case kind < 11 && g.node:
		return g.gossip(false)
	case kind < 16 && g.node:
		return g.call()
	case kind < 12:
		return g.damaged(g.one())
	case kind == 12: // several in one connection
		var all []byte
		for range 2 + g.IntN(10) {
			all = append(all, g.one()...)
		}
		return all
	}
	return g.one()
}
