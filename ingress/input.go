package ingress

import (
	"net/http"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/access"
)

// Field numbers of the protocol's InputCommandMessage and what it contains. The message is encoded
// by hand so that the body of most requests is read directly into it: one allocation, no copy.
const (
	fieldHeaders = 1
	fieldValue   = 14
	fieldKey     = 1 // of a header
	fieldText    = 2 // of a header
	fieldContent = 1 // of a value
)

// Headers with the path and query of the request: our name and the one that SDKs know.
var pathHeaders = [...]string{"x-platform-ingress-path", "x-restate-ingress-path"}

// input is the Input entry of a request that is being read: its headers, then its body.
type input struct {
	header http.Header
	path   string // path and query
	hop    []string
	pass   []string // names that are withheld otherwise
	size   int      // of the encoded headers
}

// newInput collects the headers of a request and computes their size. pass are the canonical names
// of headers with credentials that handlers get.
func newInput(r *http.Request, pass []string) (*input, error) {
	in := &input{header: r.Header, path: r.RequestURI, hop: hopByHop(r.Header["Connection"]), pass: pass}
	if !strings.HasPrefix(in.path, "/") || !isASCII(in.path) {
		in.path = r.URL.RequestURI()
	}
	if !isASCII(in.path) {
		return nil, badRequest("bad query: characters outside ASCII must be percent-encoded")
	}
	for _, name := range pathHeaders {
		in.size += fieldSize(fieldHeaders, headerSize(name, in.path))
	}
	for name, values := range r.Header {
		if in.dropped(name) {
			continue
		}
		for _, value := range values {
			if !isASCII(value) {
				return nil, badRequest("bad header: the value of '%s' has characters outside ASCII", strings.ToLower(name))
			}
			in.size += fieldSize(fieldHeaders, headerSize(name, value))
		}
	}
	return in, nil
}

// encode returns the Input entry with space for a body of that length at its end.
func (in *input) encode(length int) (payload, body []byte) {
	value := 0
	if length > 0 {
		value = fieldSize(fieldContent, length)
	}
	b := make([]byte, 0, in.size+fieldSize(fieldValue, value))
	for _, name := range pathHeaders {
		b = appendHeader(b, name, in.path)
	}
	for name, values := range in.header {
		if in.dropped(name) {
			continue
		}
		for _, text := range values {
			b = appendHeader(b, name, text)
		}
	}
	b = appendPrefix(b, fieldValue, value)
	if length > 0 {
		b = appendPrefix(b, fieldContent, length)
	}
	payload = b[:len(b)+length]
	return payload, payload[len(b):]
}

// dropped reports whether a header is not passed to handlers: those of the connection, those that
// the ingress consumes, and those that it sets.
func (in *input) dropped(name string) bool {
	switch name {
	case "Connection", "Host", "Idempotency-Key", "Idempotency-Expires",
		"Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
		"X-Platform-Ingress-Path", "X-Restate-Ingress-Path", "X-Platform-Claims":
		return true
	case "Authorization", "Cookie", "X-Api-Key", "Api-Key", "X-Auth-Token", "X-Access-Token", "X-Csrf-Token", "X-Amz-Security-Token",
		"X-Forwarded-Access-Token", "X-Goog-Iap-Jwt-Assertion", "X-Amzn-Oidc-Data", "X-Amzn-Oidc-Accesstoken", "Cf-Access-Jwt-Assertion", "X-Vault-Token":
		// Credentials of callers would be stored with the invocation, and shown with it.
		return !slices.Contains(in.pass, name)
	}
	if len(name) == len(access.Header) && name != access.Header && strings.EqualFold(strings.ReplaceAll(name, "_", "-"), access.Header) {
		return true // handlers whose framework maps _ to - would take it for the name of the caller
	}
	// Callers cannot hide their name from handlers.
	return in.hop != nil && name != access.Header && slices.Contains(in.hop, name)
}

// hopByHop are the headers that a Connection header names, canonical; nil for
// those that it usually has.
func hopByHop(connection []string) (names []string) {
	for _, line := range connection {
		if line == "keep-alive" || line == "close" {
			continue
		}
		for name := range strings.SplitSeq(line, ",") {
			names = append(names, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	return names
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// fieldSize returns the encoded size of a bytes field.
func fieldSize(number protowire.Number, length int) int {
	return protowire.SizeTag(number) + protowire.SizeBytes(length)
}

func headerSize(name, value string) int {
	size := fieldSize(fieldKey, len(name))
	if value != "" {
		size += fieldSize(fieldText, len(value))
	}
	return size
}

// appendPrefix appends the tag and length of a bytes field.
func appendPrefix(b []byte, number protowire.Number, length int) []byte {
	b = protowire.AppendTag(b, number, protowire.BytesType)
	return protowire.AppendVarint(b, uint64(length))
}

// appendHeader writes a header with its name in lower case, as handlers expect it.
func appendHeader(b []byte, name, value string) []byte {
	b = appendPrefix(b, fieldHeaders, headerSize(name, value))
	b = appendPrefix(b, fieldKey, len(name))
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	if value == "" {
		return b
	}
	b = appendPrefix(b, fieldText, len(value))
	return append(b, value...)
}
