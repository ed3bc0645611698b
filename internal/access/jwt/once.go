package jwt

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// once serves repeated requests from the last response, so that tokens with unknown keys cannot
// make the server flood the issuer.
type once struct {
	next http.RoundTripper
	now  func() time.Time
	log  *slog.Logger // gets why a request failed

	mu    sync.Mutex // covers known
	known map[string]kept
}

type kept struct {
	at     time.Time
	header http.Header
	body   []byte
	err    error
}

const (
	maxKept = 16
	maxBody = 1 << 20
)

// NewTransport returns a transport for reads of the documents of an identity provider, whose
// responses, also failures, it repeats for ten seconds.
func NewTransport(next http.RoundTripper, now func() time.Time, log *slog.Logger) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return &once{next: next, now: now, log: log, known: map[string]kept{}}
}

// RoundTrip implements http.RoundTripper for GET. Responses with another status than 200 are errors.
func (o *once) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	address := r.URL.String()
	k, known := o.known[address]
	if !known || o.now().Sub(k.at) >= retryInterval {
		if k = o.fetch(r); k.err != nil {
			o.log.Warn("request to the identity provider failed; its tokens and logins are rejected until it succeeds", "url", address, "err", k.err, "retry_after", retryInterval)
		}
		if len(o.known) >= maxKept {
			clear(o.known)
		}
		o.known[address] = k
	}
	if k.err != nil {
		return nil, k.err
	}
	return &http.Response{
		Status: http.StatusText(http.StatusOK), StatusCode: http.StatusOK, Header: k.header.Clone(), Body: io.NopCloser(bytes.NewReader(k.body)),
		ContentLength: int64(len(k.body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
	}, nil
}

func (o *once) fetch(r *http.Request) (k kept) {
	defer func() { k.at = o.now() }() // a request that timed out counts from then on
	resp, err := o.next.RoundTrip(r)
	if err != nil {
		k.err = err
		return k
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		k.err = fmt.Errorf("status %d", resp.StatusCode)
		return k
	}
	k.header = resp.Header
	k.body, k.err = io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return k
}
