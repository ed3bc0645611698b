package fabric

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"platform/internal/nodelink"
	"platform/partition"
	"platform/proto/node"
)

const (
	// A page is sent when it reaches either size.
	pageRecords = 256
	pageBytes   = 64 << 10
)

// Records sends the records of a partition. It is called by the gRPC server.
func (s *Server) Records(req *node.RecordsRequest, stream node.NodePartitions_RecordsServer) error {
	if _, err := s.accept(stream.Context(), req.Hello); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	w := &pageWriter{stream: stream, page: &node.RecordsPage{Hello: s.self.Hello()}}
	p := s.local(req.Partition)
	if p == nil {
		w.page.Code = node.PartitionCode_PARTITION_CODE_NOT_LEADER
		return w.flush()
	}
	if !p.Leading() {
		s.awaitReady(ctx, p)
	}
	for r, err := range p.Records(ctx, req.Completed) {
		if err != nil {
			w.page.Code, w.page.Message = codeOf(err), err.Error()
			if w.page.Code == node.PartitionCode_PARTITION_CODE_NOT_LEADER {
				w.page.Leader = s.leaderHint(p)
			}
			break
		}
		if ctx.Err() != nil {
			return status.Error(codes.Unavailable, "node is stopping")
		}
		if err := w.add(r); err != nil {
			return err
		}
	}
	return w.flush()
}

// pageWriter collects records into pages.
type pageWriter struct {
	stream node.NodePartitions_RecordsServer
	page   *node.RecordsPage
	size   int
}

func (w *pageWriter) add(r partition.Record) error {
	m, err := recordToWire(r)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	w.page.Records = append(w.page.Records, m)
	w.size += len(m.Invocation)
	if len(w.page.Records) < pageRecords && w.size < pageBytes {
		return nil
	}
	return w.flush()
}

func (w *pageWriter) flush() error {
	err := w.stream.Send(w.page)
	clear(w.page.Records)
	w.page.Hello, w.page.Records, w.size = nil, w.page.Records[:0], 0
	return err
}

// Records implements Replica.
func (r *Remote) Records(ctx context.Context, completed bool) iter.Seq2[partition.Record, error] {
	return func(yield func(partition.Record, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx) // ends the stream if the caller stops early
		defer cancel(nil)
		defer r.monitor(ctx, cancel)()
		stream, err := r.openRecords(ctx, completed)
		if err != nil {
			yield(partition.Record{}, r.streamError(ctx, err))
			return
		}
		for first := true; ; first = false {
			page, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil && first {
				_, err = r.c.self.Verify(stream.Context(), page.Hello)
			}
			if err != nil {
				yield(partition.Record{}, r.streamError(ctx, err))
				return
			}
			if !r.yieldPage(page, yield) {
				return
			}
		}
	}
}

func (r *Remote) openRecords(ctx context.Context, completed bool) (node.NodePartitions_RecordsClient, error) {
	if r.c.self.ClusterID() == "" {
		return nil, nodelink.ErrNoCluster
	}
	p, err := r.c.nodeConn(r.address)
	if err != nil {
		return nil, err
	}
	r.c.requests.inc(node.PartitionMethod_PARTITION_METHOD_UNSPECIFIED)
	return node.NewNodePartitionsClient(p.conn.Conn()).Records(ctx, &node.RecordsRequest{
		Hello: r.c.self.Hello(), Partition: r.id, Completed: completed,
	})
}

// monitor cancels a stream of records when the node becomes unresponsive or another
// replica leads. The returned function stops monitoring.
func (r *Remote) monitor(ctx context.Context, cancel context.CancelCauseFunc) func() {
	p, err := r.c.nodeConn(r.address)
	if err != nil {
		return func() {} // opening the stream fails likewise
	}
	l, err := p.open()
	if err != nil {
		return func() {}
	}
	var watching sync.WaitGroup
	done := make(chan struct{})
	watching.Go(func() {
		if err := l.monitor(ctx, done, r.leader); err != nil {
			cancel(fmt.Errorf("partition %d: %w: %w", r.id, ErrUnreachable, err))
		}
	})
	return func() {
		close(done)
		watching.Wait()
	}
}

// streamError returns the error of a stream of records that ended early.
func (r *Remote) streamError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("partition %d: %w: %s: %w", r.id, ErrUnreachable, r.address, err)
}

// yieldPage yields the records of a page. It returns false if the iteration ends.
func (r *Remote) yieldPage(page *node.RecordsPage, yield func(partition.Record, error) bool) bool {
	for _, m := range page.Records {
		rec, err := recordFromWire(m)
		if err != nil {
			yield(partition.Record{}, r.decodeError(err))
			return false
		}
		if !yield(rec, nil) {
			return false
		}
	}
	if err := remoteError(r.id, r.address, page.Code, page.Message, page.Leader); err != nil {
		yield(partition.Record{}, err)
		return false
	}
	return true
}
