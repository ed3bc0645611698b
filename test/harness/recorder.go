package harness

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"
)

// Recorder is what services tell of their side effects, by HTTP, and what they
// can be made to wait for. POST /record/NAME stores the body under NAME and
// answers how many there are now; GET /gate/NAME answers once the gate is open.
type Recorder struct {
	server *httptest.Server

	mu      sync.Mutex // covers all below
	records map[string][]string
	gates   map[string]chan struct{}
	changed chan struct{} // closed and replaced by each record
}

// NewRecorder starts a recorder on 127.0.0.1; Close ends it.
func NewRecorder() *Recorder {
	r := &Recorder{records: map[string][]string{}, gates: map[string]chan struct{}{}, changed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /record/{name}", func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, strconv.Itoa(r.add(req.PathValue("name"), string(body))))
	})
	mux.HandleFunc("GET /gate/{name}", func(w http.ResponseWriter, req *http.Request) {
		select {
		case <-r.gate(req.PathValue("name")):
		case <-req.Context().Done():
		}
	})
	r.server = httptest.NewServer(mux)
	return r
}

// URL returns the recorder's address, which services get as RECORDER.
func (r *Recorder) URL() string { return r.server.URL }

// Close opens every gate and stops the recorder.
func (r *Recorder) Close() {
	r.mu.Lock()
	for _, g := range r.gates {
		closeOnce(g)
	}
	r.mu.Unlock()
	r.server.CloseClientConnections()
	r.server.Close()
}

// Open lets everybody through the named gate, now and later.
func (r *Recorder) Open(name string) {
	g := r.gate(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	closeOnce(g)
}

// Values returns what was recorded under name, in order of arrival.
func (r *Recorder) Values(name string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.records[name]...)
}

// Await returns the values of name once there are at least n of them, or what
// there is when the limit is over.
func (r *Recorder) Await(ctx context.Context, name string, n int, limit time.Duration) []string {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		values := r.Values(name) // after changed was taken, so no record is missed
		if len(values) >= n {
			return values
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return values
		}
	}
}

func (r *Recorder) add(name, value string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records[name] = append(r.records[name], value)
	close(r.changed)
	r.changed = make(chan struct{})
	return len(r.records[name])
}

func (r *Recorder) gate(name string) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	g, ok := r.gates[name]
	if !ok {
		g = make(chan struct{})
		r.gates[name] = g
	}
	return g
}

// closeOnce closes g unless it is closed; the caller holds the lock.
func closeOnce(g chan struct{}) {
	select {
	case <-g:
	default:
		close(g)
	}
}
