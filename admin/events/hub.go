package events

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"platform/internal/access"
)

// Version identifies a state of a topic. Equal states have equal versions on all nodes.
type Version uint64

// Unknown is the version of a topic that has not been read yet.
const Unknown Version = 0

// VersionOf returns the version of a state that is encoded as data.
func VersionOf(data []byte) Version {
	h := fnv.New64a()
	_, _ = h.Write(data)
	return max(Version(h.Sum64()), Unknown+1)
}

// Source provides the versions of a topic.
type Source struct {
	// Name identifies the source. Topics with the same name share a poller.
	Name string
	// Interval is the time between reads.
	Interval time.Duration
	// Read returns the current version. If it fails, it is retried after the interval; viewers are
	// not notified.
	Read func(ctx context.Context) (Version, error)
}

// Config contains the limits of a Hub.
type Config struct {
	MaxSubscriptions int
	MaxSources       int           // polled concurrently
	ReadTimeout      time.Duration // per read

	// What one client may have of both.
	MaxClientSubscriptions, MaxClientSources int
}

// Errors of Subscribe.
var (
	errTooManySubscriptions = errors.New("too many event streams are open")
	errTooManySources       = errors.New("too many different topics are viewed")
	errClientSubscriptions  = errors.New("the client has too many event streams open")
	errClientSources        = errors.New("the client views too many different topics")
)

// Hub polls the sources that have subscriptions. Its methods may be called concurrently.
type Hub struct {
	cfg Config

	mu            sync.Mutex // covers the fields below and those of pollers
	subscriptions int
	pollers       map[string]*poller
	clients       map[access.Client]*client
}

// client is what a client has.
type client struct {
	subscriptions int
	sources       map[string]int // number of its subscriptions, by the name of a source
}

// NewHub returns a hub without pollers.
func NewHub(cfg Config) *Hub {
	return &Hub{cfg: cfg, pollers: map[string]*poller{}, clients: map[access.Client]*client{}}
}

// poller polls a source.
type poller struct {
	source  Source
	stop    context.CancelFunc
	version Version
	viewers []*Subscription
}

// Subscription notifies a viewer of changes of its sources until it is closed.
type Subscription struct {
	hub     *Hub
	client  access.Client
	pollers []*poller // in the order of the sources
	changed chan struct{}
}

// Subscribe returns a subscription of a client to sources and starts polling those that are not
// polled yet. The caller must close the subscription. It returns one of the errors above if a limit
// is reached.
func (h *Hub) Subscribe(of access.Client, sources []Source) (*Subscription, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	own := h.clients[of]
	if own == nil {
		own = &client{sources: map[string]int{}}
	}
	fresh, added := map[string]bool{}, map[string]bool{} // for all, and for the client
	for _, source := range sources {
		if h.pollers[source.Name] == nil {
			fresh[source.Name] = true
		}
		if own.sources[source.Name] == 0 {
			added[source.Name] = true
		}
	}
	switch {
	case own.subscriptions >= h.cfg.MaxClientSubscriptions:
		return nil, errClientSubscriptions
	case len(own.sources)+len(added) > h.cfg.MaxClientSources:
		return nil, errClientSources
	case h.subscriptions >= h.cfg.MaxSubscriptions:
		return nil, errTooManySubscriptions
	case len(h.pollers)+len(fresh) > h.cfg.MaxSources:
		return nil, errTooManySources
	}
	h.clients[of] = own
	own.subscriptions++
	h.subscriptions++
	s := &Subscription{hub: h, client: of, changed: make(chan struct{}, 1)}
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
			own.sources[source.Name]++
		}
		s.pollers = append(s.pollers, p)
	}
	s.notify()
	return s, nil
}

// Changed returns a channel that receives a value after the version of a source has changed.
func (s *Subscription) Changed() <-chan struct{} { return s.changed }

// Versions returns the current versions of the sources, in the order passed to Subscribe.
func (s *Subscription) Versions() []Version {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	versions := make([]Version, len(s.pollers))
	for i, p := range s.pollers {
		versions[i] = p.version
	}
	return versions
}

// Close ends the subscription. Sources without another subscription are no longer polled.
func (s *Subscription) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscriptions--
	own := h.clients[s.client]
	if own.subscriptions--; own.subscriptions == 0 {
		delete(h.clients, s.client)
	}
	for _, p := range s.pollers {
		views := len(p.viewers)
		p.viewers = slices.DeleteFunc(p.viewers, func(v *Subscription) bool { return v == s })
		if len(p.viewers) == views {
			continue // the same source a second time
		}
		if own.sources[p.source.Name]--; own.sources[p.source.Name] == 0 {
			delete(own.sources, p.source.Name)
		}
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

// poll reads the version of a source at intervals until ctx ends.
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
