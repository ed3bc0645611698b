package httpserver

import (
	"context"
	"io"
	"net/http"
	"time"

	"platform/internal/budget"
)

// streamWriter ends an HTTP/2 stream whose client does not read the response. Other streams of the
// connection may make progress, so the timeout of the connection does not detect this.
type streamWriter struct {
	http.ResponseWriter
	timeout time.Duration
	account *budget.Account
	end     int64 // of writing, as the handler has set it, in Unix nanoseconds; 0: none
}

// SetWriteDeadline bounds the time of all writes from now on.
func (w *streamWriter) SetWriteDeadline(t time.Time) error {
	w.end = 0
	if !t.IsZero() {
		w.end = t.UnixNano()
	}
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(t)
}

// Write sends p. The timeout applies to each piece of it.
func (w *streamWriter) Write(p []byte) (n int, err error) {
	controller := http.NewResponseController(w.ResponseWriter)
	for {
		piece := p[n:min(len(p), n+writePiece)]
		timeout := w.timeout
		if len(p) > writePiece {
			timeout = stallTimeout(w.account, timeout)
		}
		_ = controller.SetWriteDeadline(earlier(time.Now().Add(timeout), w.end))
		m, err := w.ResponseWriter.Write(piece)
		n += m
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// Unwrap is for http.ResponseController.
func (w *streamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// timed ends responses of a handler whose client does not read, and closes connections after a
// chunked body. net/http silently ignores a Content-Length beside it: a proxy that does not ignore
// it would treat the next request as a part of the body.
func timed(h http.Handler, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 {
			w = &streamWriter{ResponseWriter: w, timeout: timeout, account: budget.From(r.Context())}
		}
		if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// fullTimeout is the maximum time that a client has for each 64 KiB after the first of a body while
// the budget of bodies is full, so that slow clients do not starve the others. It is long enough
// that packet loss or a busy node does not make a client count as slow.
const fullTimeout = 5 * time.Second

// StallTimeout returns how long the client of a request may take for its next 64 KiB:
// the timeout, or fullTimeout if that is shorter and the budget is full (see budget.Account.Full).
func StallTimeout(ctx context.Context, timeout time.Duration) time.Duration {
	return stallTimeout(budget.From(ctx), timeout)
}

func stallTimeout(account *budget.Account, timeout time.Duration) time.Duration {
	if timeout > fullTimeout && account.Full() {
		return fullTimeout
	}
	return timeout
}

// RetryAfter returns d as the value of a Retry-After header: whole seconds, at least one.
func RetryAfter(d time.Duration) int {
	return max(1, int((d+time.Second-1)/time.Second))
}

// Body reads a request body whose client may pause for at most the timeout within each
// 64 KiB, see StallTimeout. A client that is slower ends reading with os.ErrDeadlineExceeded.
type Body struct {
	w       http.ResponseWriter
	from    io.Reader
	timeout time.Duration
	account *budget.Account
	stall   *time.Timer
	piece   int
}

// NewBody returns a reader of r's body.
func NewBody(w http.ResponseWriter, r *http.Request, timeout time.Duration) *Body {
	b := &Body{w: w, from: r.Body, timeout: timeout, account: budget.From(r.Context())}
	b.stall = time.AfterFunc(timeout, func() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
	})
	return b
}

// Read reads the body.
func (b *Body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.piece += n; b.piece >= writePiece {
		b.piece = 0
		b.stall.Reset(stallTimeout(b.account, b.timeout))
	}
	return n, err
}

// Close ends the timeout. It does not close the body.
func (b *Body) Close() error {
	b.stall.Stop()
	return nil
}
