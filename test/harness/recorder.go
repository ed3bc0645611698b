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

// Recorder is an HTTP server that services report side effects to and that can block
// them at gates. POST /record/NAME appends the body to the records of NAME and returns
// their number; GET /gate/NAME returns when the gate is open.
type Recorder struct {
	server *httptest.Server

	mu      sync.Mutex // covers the fields below
	records map[string][]string
	gates   map[string]chan struct{}
	changed chan struct{} // closed and replaced when a record is added
}

// newRecorder starts a recorder on 127.0.0.1; Close stops it.
func newRecorder() *Recorder {
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

// URL returns the recorder's address, which services read from the variable RECORDER.
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

// Open opens the named gate for current and later requests.
func (r *Recorder) Open(name string) {
	g := r.gate(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	closeOnce(g)
}

// Values returns the records of name in order of arrival.
func (r *Recorder) Values(name string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.records[name]...)
}

// Await waits until name has at least n records and returns them. On timeout it returns
// the records so far.
func (r *Recorder) Await(ctx context.Context, name string, n int, timeout time.Duration) []string {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		values := r.Values(name) // read after changed, so that no record is missed
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

// closeOnce closes g unless it is already closed; the caller holds the lock.
func closeOnce(g chan struct{}) {
	select {
	case <-g:
	default:
		close(g)
	}
}
