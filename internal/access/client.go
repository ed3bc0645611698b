package access

import (
	"context"
	"net/http"
	"sync"
)

// Client identifies who sends requests, for limits of what one client may use: a principal or, without
// credentials, an address. It is empty for the server itself.
type Client string

// Prefixes of clients.
const (
	principalClient = "principal "
	addressClient   = "address "
)

// ClientOf returns the client of a request.
func ClientOf(r *http.Request) Client {
	if p := From(r.Context()); p.Name != "" {
		return Client(principalClient + p.Name)
	}
	return Client(addressClient + NetworkOf(r.RemoteAddr))
}

type clientKey struct{}

// WithClient returns a context with a client.
func WithClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// ClientFrom returns the client of a context; an empty one if there is none.
func ClientFrom(ctx context.Context) Client {
	c, _ := ctx.Value(clientKey{}).(Client)
	return c
}

// Shares bound how many of something each client holds at a time. A nil value has no bound.
type Shares struct {
	limit int64

	mu   sync.Mutex // covers held
	held map[Client]int64
}

// leftToOthers is the part of a limit, one in so many, that a client leaves to others.
const leftToOthers = 8

// NewShares returns the shares of clients of a limit for all of them; nil if that is 0, for no bound.
func NewShares(limit int64) *Shares {
	if limit == 0 {
		return nil
	}
	return &Shares{limit: limit - limit/leftToOthers, held: map[Client]int64{}}
}

// Size returns the share of a client.
func (s *Shares) Size() int64 { return s.limit }

// Take takes one for the client of a request, until it is given back. It returns false if the client
// holds its share.
func (s *Shares) Take(r *http.Request) (Client, bool) {
	if s == nil {
		return "", true
	}
	c := ClientOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[c] >= s.limit {
		return c, false
	}
	s.held[c]++
	return c, true
}

// Give gives back one that a client has taken.
func (s *Shares) Give(c Client) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[c]--; s.held[c] == 0 {
		delete(s.held, c)
	}
}
