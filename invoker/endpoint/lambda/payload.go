package lambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"

	"platform/invoker/endpoint"
)

// codec converts requests to function payloads, and function payloads to responses.
type codec struct {
	compressFrom int
	maxResponse  int
	encoder      func() (*zstd.Encoder, error) // created on first use, because it takes memory
	// decoding has a slot for each response that is being decoded, which takes up to three times
	// the memory that is held for it.
	decoding chan struct{}
}

func (c *codec) init(compressFrom, maxResponse int) {
	c.compressFrom, c.maxResponse = compressFrom, maxResponse
	c.encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	})
	c.decoding = make(chan struct{}, runtime.GOMAXPROCS(0))
}

const encodingZstd = "zstd"

// event is the payload of a function without the body, which is appended.
type event struct {
	Path            string            `json:"path"`
	HTTPMethod      string            `json:"httpMethod"`
	Headers         map[string]string `json:"headers"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

// request encodes a request. Header names are lower case, because some functions compare
// them that way.
func (c *codec) request(f *endpoint.Function, r *http.Request) ([]byte, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	e := event{Path: r.URL.Opaque, HTTPMethod: r.Method, Headers: make(map[string]string, len(r.Header)+2), IsBase64Encoded: len(body) > 0}
	for name, values := range r.Header {
		if len(values) > 0 {
			e.Headers[name] = values[0]
		}
	}
	if f.Compress {
		e.Headers["accept-encoding"] = encodingZstd
		if len(body) > 0 && len(body) >= c.compressFrom {
			encoder, err := c.encoder()
			if err != nil {
				return nil, err
			}
			body = encoder.EncodeAll(body, nil)
			e.Headers["content-encoding"] = encodingZstd
		}
	}
	head, err := json.Marshal(e)
	if err != nil || len(body) == 0 {
		return head, err
	}
	const name = `,"body":"`
	out := make([]byte, 0, len(head)+len(name)+base64.StdEncoding.EncodedLen(len(body))+2)
	out = append(append(out, head[:len(head)-1]...), name...)
	return append(base64.StdEncoding.AppendEncode(out, body), `"}`...), nil
}

// result is the result of a function.
type result struct {
	StatusCode      int               `json:"statusCode"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

// response decodes the result of a function, for which memory is held. Reading the body of the
// response releases it.
func (c *codec) response(ctx context.Context, payload []byte, held *holding) (*http.Response, error) {
	resp, body, err := c.decode(ctx, payload)
	if err != nil {
		return nil, err
	}
	held.reduce(cap(body))
	switch encoding := resp.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
		resp.Body = &deliveredBody{Reader: bytes.NewReader(body), held: held}
	case encodingZstd:
		if resp.Body, err = c.decompress(body, held); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("%w: unsupported content encoding %q", endpoint.ErrFunctionResponse, encoding)
	}
	return resp, nil
}

// decode returns the response without its body, and the body.
func (c *codec) decode(ctx context.Context, payload []byte) (*http.Response, []byte, error) {
	select {
	case c.decoding <- struct{}{}:
		defer func() { <-c.decoding }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	var r result
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", endpoint.ErrFunctionResponse, err)
	}
	if r.StatusCode < 200 || r.StatusCode > 999 {
		return nil, nil, fmt.Errorf("%w: invalid status code %d", endpoint.ErrFunctionResponse, r.StatusCode)
	}
	body := []byte(r.Body)
	if r.IsBase64Encoded {
		n, err := base64.StdEncoding.Decode(body, body)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: body: %w", endpoint.ErrFunctionResponse, err)
		}
		body = body[:n]
	}
	resp := newResponse(r.StatusCode, nil)
	for name, value := range r.Headers {
		resp.Header.Set(name, value)
	}
	return resp, body, nil
}

// decompress returns the decompressed body, which is decompressed as it is read: a small response
// may become a large one. Memory is held for the window of the compression.
func (c *codec) decompress(b []byte, held *holding) (io.ReadCloser, error) {
	var head zstd.Header
	if err := head.Decode(b); err != nil {
		return nil, fmt.Errorf("%w: decompress body: %w", endpoint.ErrFunctionResponse, err)
	}
	window := max(head.WindowSize, zstd.MinWindowSize)
	if head.SingleSegment {
		window = max(head.FrameContentSize, zstd.MinWindowSize)
	}
	if window > uint64(c.maxResponse) {
		return nil, errTooLarge
	}
	if err := held.add(int(window)); err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, fmt.Errorf("%w: decompress body: %w", endpoint.ErrFunctionResponse, err)
	}
	return &deliveredBody{Reader: &cappedReader{decoder, c.maxResponse}, held: held, whole: true, closed: decoder.Close}, nil
}

// cappedReader fails when more than left bytes are read.
type cappedReader struct {
	io.Reader
	left int
}

// Read implements io.Reader.
func (r *cappedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.left -= n; r.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// newResponse returns a response with a status. Its protocol is HTTP/2, so that no special
// rules of HTTP/1 apply.
func newResponse(status int, body []byte) *http.Response {
	return &http.Response{StatusCode: status, ProtoMajor: 2, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}
}

// maxMessage is the maximum length in bytes of an error message.
const maxMessage = 1 << 10

// requestPrefix matches timestamps and request IDs in messages of the Lambda runtime.
var requestPrefix = regexp.MustCompile(`^([0-9T:.-]+Z [0-9a-f-]{36} |RequestId: [0-9a-f-]{36} (Error: )?)`)

// functionError returns the error of a function that crashed or timed out.
func functionError(payload []byte) error {
	var e struct {
		Message string `json:"errorMessage"`
		Type    string `json:"errorType"`
	}
	if err := json.Unmarshal(payload, &e); err != nil {
		e.Message = "its error message is unreadable"
	}
	message := requestPrefix.ReplaceAllString(e.Message, "")
	if len(message) > maxMessage {
		message = message[:maxMessage]
	}
	return &endpoint.FunctionError{Type: e.Type, Message: message}
}
