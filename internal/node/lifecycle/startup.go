package lifecycle

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"platform/internal/access"
	"platform/internal/cluster"
	"platform/internal/httpserver"
	"platform/internal/process"
)

// quietPeriod is how long requests to a starting node wait before they are rejected. This suffices
// for a member of a cluster; a new node may have to wait for others.
const quietPeriod = 3 * time.Second

// StartupConfig configures a Startup. TLS configurations of ports without TLS are nil.
type StartupConfig struct {
	Node                 string
	Provisioning         *cluster.Provisioning
	IngressTLS, AdminTLS *tls.Config
	Connections          process.ConnectionLimits
	Guard                *access.Guard         // of the admin port
	Authenticator        *access.Authenticator // of the admin port
	Log                  *slog.Logger
}

// Startup responds to callers and operators while the node starts.
type Startup struct {
	cfg    StartupConfig
	reason atomic.Pointer[string] // what the node waits for; nil: for the metadata
}

// NewStartup returns a Startup that does not serve yet.
func NewStartup(cfg StartupConfig) *Startup { return &Startup{cfg: cfg} }

// Report records what the node waits for. Empty means the metadata of the cluster, for which every
// starting node waits.
func (s *Startup) Report(reason string) {
	if reason == "" {
		s.reason.Store(nil)
		return
	}
	s.reason.Store(&reason)
}

// waitsFor returns what the node waited for last.
func (s *Startup) waitsFor() string {
	if reason := s.reason.Load(); reason != nil {
		return *reason
	}
	return "waiting for the metadata of the cluster"
}

// Serve responds on the ports of the ingress and the admin API that the node is starting, until the
// returned function is called. The ports stay open after it. openIngress returns the port of the
// ingress, which may be closed until it is called.
func (s *Startup) Serve(openIngress func(context.Context) (net.Listener, error), admin net.Listener) (ready func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	afterQuiet := func(serve func()) {
		wg.Go(func() {
			select {
			case <-time.After(quietPeriod):
				serve()
			case <-ctx.Done():
			}
		})
	}
	afterQuiet(func() { serveBorrowed(ctx, admin, s.cfg.AdminTLS, s.cfg.Connections.Admin, s.handler(true)) })
	afterQuiet(func() {
		ingress, err := openIngress(ctx)
		if err != nil {
			return // the node reports it when it opens the port to serve
		}
		serveBorrowed(ctx, ingress, s.cfg.IngressTLS, s.cfg.Connections.Ingress, s.handler(false))
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// serveBorrowed serves on a listener that it does not close. Requests whose header has arrived when ctx ends get their
// response. It does not wait for their bodies: until it returns, the node does not serve on the port.
func serveBorrowed(ctx context.Context, ln net.Listener, secure *tls.Config, connections int, handler http.Handler) {
	port, ok := ln.(deadlineListener)
	if !ok {
		return
	}
	// An error means that the port is closed, which the node reports when it serves on it.
	_ = httpserver.Serve(ctx, borrowed{port}, httpserver.Config{
		Handler: handler, TLS: secure, MaxConnections: connections, CancelGrace: time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	_ = port.SetDeadline(time.Time{})
}

type deadlineListener interface {
	net.Listener
	SetDeadline(t time.Time) error
}

// borrowed is a listener that its owner closes.
type borrowed struct{ deadlineListener }

// Accept implements net.Listener. A deadline ends accepting, whereas the library would retry.
func (b borrowed) Accept() (net.Conn, error) {
	c, err := b.deadlineListener.Accept()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = net.ErrClosed
	}
	return c, err
}

// Close ends Accept.
func (b borrowed) Close() error { return b.SetDeadline(time.Unix(1, 0)) }

// handler responds with the reason why the node is not ready; on the admin port it also lets an
// operator create the cluster.
func (s *Startup) handler(admin bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close") // this server ends when the node is ready
		reason := "node " + s.cfg.Node + " is starting: " + s.waitsFor()
		if !admin {
			refuseCaller(w, reason)
			return
		}
		access.Reject(w, http.StatusServiceUnavailable, reason)
	})
	if !admin {
		return mux
	}
	mux.Handle("POST /cluster/provision", access.Restrict(http.HandlerFunc(s.provision), s.cfg.Authenticator, access.Administer))
	return access.Protect(mux, s.cfg.Guard)
}

// refuseCaller responds as the ingress would.
func refuseCaller(w http.ResponseWriter, reason string) {
	for _, name := range []string{"X-Platform-Error-Source", "X-Restate-Error-Source"} {
		w.Header().Set(name, "ingress")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(map[string]any{ // fails only if the client has disconnected
		"code": http.StatusServiceUnavailable, "message": reason + "; the request had no effect and can be retried safely", "source": "ingress",
	})
}

// provision allows this node to create the cluster, which it does once all expected nodes are
// present.
func (s *Startup) provision(w http.ResponseWriter, r *http.Request) {
	var req cluster.ProvisionRequest
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	if err == nil && len(bytes.TrimSpace(body)) > 0 {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		access.Reject(w, http.StatusBadRequest, "the body is not JSON such as {\"num_partitions\": 8, \"replication\": 3}: "+err.Error())
		return
	}
	if name, repeated := httpserver.RepeatedKey(body, true); repeated {
		access.Reject(w, http.StatusBadRequest, "the body has the field '"+name+"' twice")
		return
	}
	err = s.cfg.Provisioning.Request(req)
	if refusal, ok := errors.AsType[*cluster.ProvisionRefusal](err); ok {
		access.Reject(w, refusal.Status, refusal.Error())
		return
	}
	if err != nil {
		access.Reject(w, http.StatusServiceUnavailable, "node "+s.cfg.Node+" has not started gossip with other nodes yet: "+s.waitsFor())
		return
	}
	w.WriteHeader(http.StatusAccepted)
}
