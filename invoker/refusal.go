package invoker

import (
	"fmt"
	"strings"
	"time"

	"platform/internal/errcode"
	"platform/invoker/endpoint"
)

const (
	// refusalTimeout is how long to wait for the body of an error status; some endpoints
	// send it only after the request has ended.
	refusalTimeout = 2 * time.Second
	// refusalBody bounds the part of the body that the failure contains, in bytes.
	refusalBody = 1 << 10
)

// refusal is a response with an error status, whose body may contain details.
type refusal struct {
	failure *failure // nil: there is none
	body    []byte
}

// read adds a part of the body. It returns false if no more of it is needed.
func (r *refusal) read(p []byte) (more bool) {
	r.body = append(r.body, p[:min(len(p), refusalBody-len(r.body))]...)
	return len(r.body) < refusalBody
}

// take returns the failure, with the part of the body that has arrived; nil if there is none,
// or if it was taken before.
func (r *refusal) take() *failure {
	f := r.failure
	if f == nil {
		return nil
	}
	r.failure = nil
	if text := strings.TrimSpace(strings.ToValidUTF8(string(r.body), "�")); text != "" {
		f.Message = fmt.Sprintf("%s: %s", f.Message, text)
	}
	return f
}

// checkHead returns the failure of an unexpected response, or nil.
func (a *attempt) checkHead(h *endpoint.Head) *failure {
	code := errcode.RT0012
	switch h.Status {
	case 502, 504:
		code = errcode.RT0010
	case 429, 503:
		code = errcode.RT0023
	case 415:
		code = errcode.RT0015
	case 413:
		code = errcode.RT0019
	}
	if h.Status < 200 || h.Status > 299 {
		f := failureOf(errcode.New(code, "the endpoint responded with status %d", h.Status))
		if code == errcode.RT0023 {
			f.nextDelay = retryAfter(first(h.Header["Retry-After"]), time.Now())
		}
		return f
	}
	if got, want := first(h.Header["Content-Type"]), a.plan.version.ContentType(); got != want {
		return failureOf(errcode.New(code, "the endpoint responded with content type %q instead of %q", got, want))
	}
	return nil
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
