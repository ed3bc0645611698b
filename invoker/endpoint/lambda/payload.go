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

// codec turns requests into payloads of functions, and back.
type codec struct {
	compressFrom int
	maxResponse  int
	encoder      func() (*zstd.Encoder, error) // made when it is first needed: it takes memory
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

// event is what functions get, apart from the body, which follows.
type event struct {
	Path            string            `json:"path"`
	HTTPMethod      string            `json:"httpMethod"`
	Headers         map[string]string `json:"headers"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

// request is the payload of a request. Headers have lower case names, as some
// functions look for them so.
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

// reply is what functions answer.
type reply struct {
	StatusCode      int               `json:"statusCode"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

// response reads the answer of a function.
func (c *codec) response(payload []byte) (*http.Response, error) {
	var r reply
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", endpoint.ErrFunctionAnswer, err)
	}
	if r.StatusCode < 200 || r.StatusCode > 999 {
		return nil, fmt.Errorf("%w: the status code is %d", endpoint.ErrFunctionAnswer, r.StatusCode)
	}
	body := []byte(r.Body)
	if r.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(r.Body); err != nil {
			return nil, fmt.Errorf("%w: body: %w", endpoint.ErrFunctionAnswer, err)
		}
	}
	resp := answer(r.StatusCode, nil)
	for name, value := range r.Headers {
		resp.Header.Set(name, value)
	}
	switch encoding := resp.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case encodingZstd:
		var err error
		if body, err = c.decompress(body); err != nil {
			return nil, fmt.Errorf("%w: decompress body: %w", endpoint.ErrFunctionAnswer, err)
		}
	default:
		return nil, fmt.Errorf("%w: the content encoding is %q", endpoint.ErrFunctionAnswer, encoding)
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

// answer is a response of a status. It passes for HTTP/2, as nothing has to be taken
// into account that is peculiar to HTTP/1.
func answer(status int, body []byte) *http.Response {
	return &http.Response{StatusCode: status, ProtoMajor: 2, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}
}

// maxMessage is how much of an error message is kept.
const maxMessage = 1 << 10

// passing is what differs each time in messages of the runtime.
var passing = regexp.MustCompile(`^([0-9T:.-]+Z [0-9a-f-]{36} |RequestId: [0-9a-f-]{36} (Error: )?)`)

// functionError is the error of a function that ended without an answer: it crashed,
// or took too long.
func functionError(payload []byte) error {
	var e struct {
		Message string `json:"errorMessage"`
		Type    string `json:"errorType"`
	}
	if err := json.Unmarshal(payload, &e); err != nil {
		e.Message = "it gave no reason that can be read"
	}
	message := passing.ReplaceAllString(e.Message, "")
	if len(message) > maxMessage {
		message = message[:maxMessage]
	}
	return &endpoint.FunctionError{Type: e.Type, Message: message}
}
