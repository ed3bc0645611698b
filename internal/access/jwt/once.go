package jwt

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"
)

// once serves repeated requests from the last response, so that tokens with unknown keys cannot
// make the server flood the issuer.
type once struct {
	next http.RoundTripper
	now  func() time.Time

	mu    sync.Mutex // guards known
	known map[string]kept
}

type kept struct {
	at     time.Time
	status int
	header http.Header
	body   []byte
	err    error
}

const (
	maxKept = 16
	maxBody = 1 << 20
)

func newOnce(next http.RoundTripper, now func() time.Time) *once {
	if next == nil {
		next = http.DefaultTransport
	}
	return &once{next: next, now: now, known: map[string]kept{}}
}

// RoundTrip implements http.RoundTripper for GET.
func (o *once) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	address := r.URL.String()
	k, known := o.known[address]
	if !known || o.now().Sub(k.at) >= retryInterval {
		k = o.fetch(r)
		if len(o.known) >= maxKept {
			clear(o.known)
		}
		o.known[address] = k
	}
	if k.err != nil {
		return nil, k.err
	}
	return &http.Response{
		Status: http.StatusText(k.status), StatusCode: k.status, Header: k.header.Clone(), Body: io.NopCloser(bytes.NewReader(k.body)),
		ContentLength: int64(len(k.body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
	}, nil
}

func (o *once) fetch(r *http.Request) kept {
	k := kept{at: o.now()}
	resp, err := o.next.RoundTrip(r)
	if err != nil {
		k.err = err
		return k
	}
	defer resp.Body.Close()
	k.status, k.header = resp.StatusCode, resp.Header
	k.body, k.err = io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return k
}
