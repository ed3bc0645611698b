package events

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"sync"
	"time"
)

// Version identifies a state of a topic. Equal states have equal versions on all nodes.
type Version uint64

// Unknown is the version of a topic that has not been read yet.
const Unknown Version = 0

// VersionOf returns the version of a state that is described by data.
func VersionOf(data []byte) Version {
	h := fnv.New64a()
	_, _ = h.Write(data)
	return max(Version(h.Sum64()), Unknown+1)
}

// Source is where the versions of a topic come from.
type Source struct {
	// Name identifies the source. Topics with the same name share a poller.
	Name string
	// Interval is the time between reads.
	Interval time.Duration
	// Read returns the version. After an error it is read again; viewers are not notified.
	Read func(ctx context.Context) (Version, error)
}

// Config limits a Hub.
type Config struct {
	MaxSubscriptions int
	MaxSources       int           // that are polled
	ReadTimeout      time.Duration // of one read
}

// Errors of Subscribe.
var (
	ErrTooManySubscriptions = errors.New("too many event streams are open")
	ErrTooManySources       = errors.New("too many different topics are viewed")
)

// Hub polls sources that have subscriptions. Its methods may be called concurrently.
type Hub struct {
	cfg Config

	mu            sync.Mutex // covers the fields below, and those of the pollers
	subscriptions int
	pollers       map[string]*poller
}

// NewHub returns a hub that polls nothing.
func NewHub(cfg Config) *Hub { return &Hub{cfg: cfg, pollers: map[string]*poller{}} }

// poller reads one source.
type poller struct {
	source  Source
	stop    context.CancelFunc
	version Version
	viewers []*Subscription
}

// Subscription receives notices about its sources until it is closed.
type Subscription struct {
	hub     *Hub
	pollers []*poller // as requested
	changed chan struct{}
}

// Subscribe starts polling those sources that are not polled yet. The subscription must be
// closed.
func (h *Hub) Subscribe(sources []Source) (*Subscription, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subscriptions >= h.cfg.MaxSubscriptions {
		return nil, ErrTooManySubscriptions
	}
	fresh := map[string]bool{}
	for _, source := range sources {
		if h.pollers[source.Name] == nil {
			fresh[source.Name] = true
		}
	}
	if len(h.pollers)+len(fresh) > h.cfg.MaxSources {
		return nil, ErrTooManySources
	}
	h.subscriptions++
	s := &Subscription{hub: h, changed: make(chan struct{}, 1)}
	for _, source := range sources {
		p := h.pollers[source.Name]
		if p == nil {
			ctx, stop := context.WithCancel(context.Background())
			p = &poller{source: source, stop: stop}
			h.pollers[source.Name] = p
			go h.poll(ctx, p)
		}
		if !slices.Contains(p.viewers, s) {
			p.viewers = append(p.viewers, s)
		}
		s.pollers = append(s.pollers, p)
	}
	s.notify()
	return s, nil
}

// Changed receives a value after the version of a source has changed.
func (s *Subscription) Changed() <-chan struct{} { return s.changed }

// Versions returns the current versions of the sources, in the order of Subscribe.
func (s *Subscription) Versions() []Version {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	versions := make([]Version, len(s.pollers))
	for i, p := range s.pollers {
		versions[i] = p.version
	}
	return versions
}

// Close ends the subscription, and the polling of sources that have no other one.
func (s *Subscription) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscriptions--
	for _, p := range s.pollers {
		p.viewers = slices.DeleteFunc(p.viewers, func(v *Subscription) bool { return v == s })
		if len(p.viewers) == 0 && h.pollers[p.source.Name] == p {
			p.stop()
			delete(h.pollers, p.source.Name)
		}
	}
}

func (s *Subscription) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// poll reads a source until ctx ends.
func (h *Hub) poll(ctx context.Context, p *poller) {
	ticker := time.NewTicker(p.source.Interval)
	defer ticker.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, h.cfg.ReadTimeout)
		version, err := p.source.Read(limited)
		cancel()
		if err == nil {
			h.publish(p, version)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (h *Hub) publish(p *poller, version Version) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if version == p.version {
		return
	}
	p.version = version
	for _, s := range p.viewers {
		s.notify()
	}
}
