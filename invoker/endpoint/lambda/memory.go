package lambda

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"

	"platform/invoker/endpoint"
)

// maxError is the maximum size of an error response of the AWS API.
const maxError = 64 << 10

// holdStep is how much memory is held ahead for a payload of unknown length.
const holdStep = 64 << 10

// holding is the memory that the response to one invocation holds.
type holding struct {
	memory endpoint.Memory
	limit  int // of the payload
	bytes  int
}

// errTooLarge means that a function returned more than any service does.
var errTooLarge = fmt.Errorf("%w: the response is too large", endpoint.ErrFunctionResponse)

func (h *holding) add(n int) error {
	if n > h.limit-h.bytes {
		return errTooLarge
	}
	if err := h.memory.Hold(n); err != nil {
		return err
	}
	h.bytes += n
	return nil
}

// reduce releases what is held beyond n bytes.
func (h *holding) reduce(n int) {
	if n < h.bytes {
		h.memory.Release(h.bytes - n)
		h.bytes = n
	}
}

// receiver is the HTTP client of one invocation. It holds memory for the payload before the SDK
// reads it.
type receiver struct {
	client aws.HTTPClient
	held   *holding
}

// Do implements aws.HTTPClient.
func (r *receiver) Do(req *http.Request) (*http.Response, error) {
	if req.Body != nil && req.Body != http.NoBody {
		// The SDK closes its body when the response begins, and then WriteTo fails. The transport
		// calls that to see whether there is more, and closes the connection if it fails, so
		// that a response to a function that ends at once would be cut off.
		req.Body = struct{ io.ReadCloser }{req.Body}
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		resp.Body = &limitedBody{resp.Body, io.LimitReader(resp.Body, maxError)}
		return resp, nil
	}
	body := &payloadBody{ReadCloser: resp.Body, held: r.held}
	if body.known = resp.ContentLength >= 0; body.known {
		if err := r.held.add(int(min(resp.ContentLength, int64(r.held.limit)+1))); err != nil {
			resp.Body.Close()
			return nil, err
		}
	}
	resp.Body = body
	return resp, nil
}

// limitedBody is the beginning of a body.
type limitedBody struct {
	io.Closer
	io.Reader
}

// payloadBody is a payload. If its length is not known, memory is held as it arrives.
type payloadBody struct {
	io.ReadCloser
	held  *holding
	known bool
	ahead int // bytes that are held and not read yet, if the length is not known
	over  bool
}

// Read implements io.Reader.
func (b *payloadBody) Read(p []byte) (int, error) {
	switch {
	case b.known:
		return b.ReadCloser.Read(p)
	case b.over: // the SDK reads on, and logs errors
		return 0, io.EOF
	case b.ahead == 0:
		if err := b.held.add(2 * holdStep); err != nil { // twice, because the SDK's buffer grows by doubling
			b.over = true
			return 0, err
		}
		b.ahead = holdStep
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.ahead)])
	b.ahead -= n
	return n, err
}

// deliveredBody is the body of a response. It releases memory as it is read.
type deliveredBody struct {
	io.Reader
	held   *holding
	whole  bool // all memory is needed up to the end
	closed func()
}

// Read implements io.Reader.
func (b *deliveredBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	switch {
	case err != nil:
		b.end()
		if !errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: decompress body: %w", endpoint.ErrFunctionResponse, err)
		}
	case !b.whole:
		b.held.reduce(b.held.bytes - n)
	}
	return n, err
}

func (b *deliveredBody) end() {
	b.held.reduce(0)
	if b.closed != nil {
		b.closed()
		b.closed = nil
	}
}

// Close implements io.Closer.
func (b *deliveredBody) Close() error {
	b.end()
	return nil
}
