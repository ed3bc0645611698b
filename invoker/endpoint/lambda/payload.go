package lambda

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"sync"

	"github.com/klauspost/compress/zstd"

	"platform/invoker/endpoint"
)

// codec converts requests to function payloads, and function payloads to responses.
type codec struct {
	compressFrom int
	maxResponse  int
	encoder      func() (*zstd.Encoder, error) // created on first use, because it takes memory
	decoder      func() (*zstd.Decoder, error)
}

func (c *codec) init(compressFrom, maxResponse int) {
	c.compressFrom, c.maxResponse = compressFrom, maxResponse
	c.encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	})
	c.decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(maxResponse)))
	})
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

// response decodes the result of a function.
func (c *codec) response(payload []byte) (*http.Response, error) {
	var r result
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", endpoint.ErrFunctionResponse, err)
	}
	if r.StatusCode < 200 || r.StatusCode > 999 {
		return nil, fmt.Errorf("%w: invalid status code %d", endpoint.ErrFunctionResponse, r.StatusCode)
	}
	body := []byte(r.Body)
	if r.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(r.Body); err != nil {
			return nil, fmt.Errorf("%w: body: %w", endpoint.ErrFunctionResponse, err)
		}
	}
	resp := newResponse(r.StatusCode, nil)
	for name, value := range r.Headers {
		resp.Header.Set(name, value)
	}
	switch encoding := resp.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case encodingZstd:
		var err error
		if body, err = c.decompress(body); err != nil {
			return nil, fmt.Errorf("%w: decompress body: %w", endpoint.ErrFunctionResponse, err)
		}
	default:
		return nil, fmt.Errorf("%w: unsupported content encoding %q", endpoint.ErrFunctionResponse, encoding)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

func (c *codec) decompress(b []byte) ([]byte, error) {
	decoder, err := c.decoder()
	if err != nil {
		return nil, err
	}
	return decoder.DecodeAll(b, nil)
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
