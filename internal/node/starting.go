package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"platform/internal/membership"
	"platform/metadata"
)

// startQuietly is how long callers wait, unanswered, for a node that starts. That is
// long enough for one that is part of a cluster; a new one may have to wait for others
// and then says so.
const startQuietly = 3 * time.Second

// whileStarting answers on the ports of the ingress and the admin API that the node
// is starting, until the returned function is called. The ports stay open after it.
func (n *Node) whileStarting() (ready func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, ln := range []net.Listener{n.ingress, n.admin} {
		wg.Go(func() {
			select {
			case <-time.After(startQuietly):
				serveStarting(ctx, ln, n.startingHandler(ln == n.admin), n.log)
			case <-ctx.Done():
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// serveStarting serves on a listener that it borrows: it is open afterwards.
func serveStarting(ctx context.Context, ln net.Listener, handler http.Handler, log *slog.Logger) {
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: startQuietly,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	deadline, ok := ln.(interface{ SetDeadline(time.Time) error })
	if !ok {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(borrowed{ln})
	}()
	<-ctx.Done()
	_ = deadline.SetDeadline(time.Unix(1, 0)) // ends Accept
	<-done
	_ = srv.Close()
	_ = deadline.SetDeadline(time.Time{})
}

// borrowed is a listener that another one closes.
type borrowed struct{ net.Listener }

// Accept implements net.Listener. A deadline is the end here, where the library would
// try again.
func (b borrowed) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = net.ErrClosed
	}
	return c, err
}

// Close implements net.Listener.
func (borrowed) Close() error { return nil }

// startingHandler says why the node is not ready; on the admin port it also lets an
// operator create the cluster.
func (n *Node) startingHandler(admin bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		reason := "node " + n.self.Node + " is starting: " + n.waitsFor()
		if !admin {
			refuseCaller(w, reason)
			return
		}
		refuseStarting(w, http.StatusServiceUnavailable, reason)
	})
	if admin {
		mux.HandleFunc("POST /cluster/provision", n.provisionByHand)
	}
	return mux
}

// refuseCaller answers as the ingress would.
func refuseCaller(w http.ResponseWriter, reason string) {
	for _, name := range []string{"X-Platform-Error-Source", "X-Restate-Error-Source"} {
		w.Header().Set(name, "ingress")
	}
	writeStarting(w, http.StatusServiceUnavailable, map[string]any{
		"code": http.StatusServiceUnavailable, "message": reason + "; the request had no effect and can be retried safely", "source": "ingress",
	})
}

// provisionRequest is what an operator may decide about a new cluster.
type provisionRequest struct {
	NumPartitions *int `json:"num_partitions"`
	Replication   *int `json:"replication"`
}

// provisionByHand allows this node to create the cluster, which it does once the
// nodes that are expected are there.
func (n *Node) provisionByHand(w http.ResponseWriter, r *http.Request) {
	var req provisionRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&req); err != nil && !errors.Is(err, io.EOF) {
		refuseStarting(w, http.StatusBadRequest, "the body is no JSON such as {\"num_partitions\": 8, \"replication\": 3}: "+err.Error())
		return
	}
	if !n.looking.Load() {
		refuseStarting(w, http.StatusServiceUnavailable, "node "+n.self.Node+" does not look for other nodes yet: "+n.waitsFor())
		return
	}
	partitions, replication := n.cfg.DefaultNumPartitions, n.cfg.DefaultReplication
	if req.NumPartitions != nil {
		partitions = *req.NumPartitions
	}
	if req.Replication != nil {
		replication = *req.Replication
	}
	candidate, there := membership.Candidate(n.members.Nodes(), n.cfg.BootstrapExpect)
	switch {
	case partitions < 1 || partitions > metadata.MaxPartitions:
		refuseStarting(w, http.StatusUnprocessableEntity, fmt.Sprintf("num_partitions is 1 to %d", metadata.MaxPartitions))
	case replication < 1 || replication > metadata.MaxReplication:
		refuseStarting(w, http.StatusUnprocessableEntity, fmt.Sprintf("replication is 1 to %d", metadata.MaxReplication))
	case n.cfg.BootstrapExpect > 1 && there && !candidate.Self:
		refuseStarting(w, http.StatusConflict, fmt.Sprintf("ask node %s (%s): the first node by name creates the cluster", candidate.Name, candidate.Address))
	case !n.allowProvision(partitions, replication):
		refuseStarting(w, http.StatusConflict, "the cluster is being created already")
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// allowProvision lets the bootstrap go on; false if it may already.
func (n *Node) allowProvision(partitions, replication int) bool {
	n.provisioning.Lock()
	defer n.provisioning.Unlock()
	if n.mayProvision.Load() {
		return false
	}
	n.cfg.DefaultNumPartitions, n.cfg.DefaultReplication = partitions, replication
	n.mayProvision.Store(true)
	return true
}

func refuseStarting(w http.ResponseWriter, code int, message string) {
	writeStarting(w, code, map[string]any{"message": message, "code": code, "platform_code": nil})
}

func writeStarting(w http.ResponseWriter, code int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // whoever left does not want it
}
