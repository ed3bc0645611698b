package invoker

import (
	"errors"
	"net/http"
	"testing"
	"time"
	"unicode/utf8"

	"platform/invoker/endpoint"
	"platform/invoker/protocol"
)

// FuzzResponse: a response of any status with any headers and body, complete or truncated, either
// starts a stream or causes one failure, which can be shown to users.
func FuzzResponse(f *testing.F) {
	const v6 = "application/vnd.restate.invocation.v6"
	for _, c := range []struct {
		status      int
		contentType string
		retryAfter  string
		body        string
		broken      bool
	}{
		{200, v6, "", "", false}, {200, v6, "", "\x00\x03", true}, {200, "text/plain", "", "hello", false}, {0, "", "", "", true},
		{429, "", "7", "slow down", false}, {503, "text/html", "Fri, 31 Dec 2100 23:59:59 GMT", "<p>\xff</p>", false},
		{503, "", "Wed, 01 Jan 2200 00:00:00 +0000", "", true}, {429, "", "-1", "", false}, {429, "", "99999999999999", "", false},
		{502, "", "1", "", false}, {415, v6, "", "no", false}, {413, v6, "", "no", false}, {304, v6, "", "", false}, {299, v6 + "; q=1", "", "", false},
	} {
		f.Add(c.status, c.contentType, c.retryAfter, []byte(c.body), c.broken)
	}
	f.Fuzz(func(t *testing.T, status int, contentType, retryAfter string, body []byte, broken bool) {
		h := newHostile(t, hostileKind(protocol.V6, true, 0))
		defer h.close()
		w := h.again()
		header := http.Header{"Content-Type": {contentType}, "Retry-After": {retryAfter}}
		if contentType == "" {
			header = http.Header{}
		}
		w.a.Response(endpoint.Head{Status: status, Header: header})
		for len(body) > 0 && !w.over {
			n := min(len(body), 300)
			w.send(body[:n])
			body = body[n:]
		}
		var err error
		if broken {
			err = errors.New("unexpected EOF")
		}
		w.finish(err)
		task := h.session.task(h.id)
		if task == nil {
			return // it ended, paused or suspended, as a stream may demand
		}
		if task.state != backingOff || task.last == nil || task.last.ErrorCode == "" || task.last.Message == "" {
			t.Fatalf("status %d: state %v, failure %+v", status, task.state, task.last)
		}
		if status != http.StatusOK && !utf8.ValidString(task.last.Message) {
			t.Fatalf("message %q", task.last.Message)
		}
		if until := time.Until(task.due); until <= 0 {
			t.Fatalf("the next attempt comes after %s", until)
		}
	})
}

// FuzzRetryAfter: a header of that name requests a delay or nothing.
func FuzzRetryAfter(f *testing.F) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, value := range []string{
		"", "0", "1", "-1", "+1", "2147483647", "2147483648", "1.5", "Fri, 31 Dec 2100 23:59:59 GMT", "Friday, 31-Dec-99 23:59:59 GMT",
		"Fri Jan  2 03:04:06 2026", "Fri, 02 Jan 2026 03:04:06 +0100", "Fri, 31 Dec 9999 23:59:59 GMT", " 5",
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if d := retryAfter(value, now); d != nil && *d <= 0 {
			t.Fatalf("%q: %s", value, *d)
		}
	})
}
