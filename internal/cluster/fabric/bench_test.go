package fabric

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	"platform/internal/feature"
	"platform/internal/nodelink"
	"platform/partition"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/node"
)

// callFake returns a leader that responds to Call immediately.
func callFake() *fake {
	p := newFake(true)
	value := []byte(`"Hello Sarah!"`)
	p.call = func(_ context.Context, inv *machine.Invoke) (partition.Ending, machine.Outcome, error) {
		return partition.Ending{Target: inv.Target, Result: journal.Result{Value: value}}, machine.Outcome{}, nil
	}
	return p
}

// leader is a fake leader without locks.
type leader struct{ *fake }

func (leader) Leading() bool { return true }

func (l leader) Call(ctx context.Context, inv *machine.Invoke) (partition.Ending, machine.Outcome, error) {
	return l.call(ctx, inv)
}

// BenchmarkLocal measures the overhead of a handle over the replica on this node.
func BenchmarkLocal(b *testing.B) {
	var p Local = leader{callFake()}
	handle := NewDirectory(1, DirectoryConfig{Local: localReplica(p)}).Partition(0)
	inv := invocation(1)
	for name, r := range map[string]Replica{"direct": p, "handle": handle} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := r.Call(b.Context(), inv); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRemote measures calls to a replica on another node, with both nodes in this
// process, by one caller and by many concurrent ones.
func BenchmarkRemote(b *testing.B) {
	for name, callers := range map[string]int{"one": 1, "many": 128} {
		b.Run(name, func(b *testing.B) {
			r, _ := pair(b, callFake())
			inv := invocation(1)
			b.ReportAllocs()
			parallel(b, callers, func() error {
				_, _, err := r.Call(b.Context(), inv)
				return err
			})
		})
	}
}

// BenchmarkUnary measures the same with one gRPC call per request, for comparison.
func BenchmarkUnary(b *testing.B) {
	p := callFake()
	handler := func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		req := new(node.PartitionRequest)
		if err := decode(req); err != nil {
			return nil, err
		}
		return srv.(*Server).serveRequest(ctx, nil, req), nil
	}
	for name, callers := range map[string]int{"one": 1, "many": 128} {
		b.Run(name, func(b *testing.B) {
			lis, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			n := serveNode(b, lis, "c", localReplica(p), func(s *grpc.Server, server *Server) {
				s.RegisterService(&grpc.ServiceDesc{
					ServiceName: "bench", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "Call", Handler: handler}},
				}, server)
			})
			conn, err := nodelink.Dial(n.address, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			inv := invocation(1)
			b.ReportAllocs()
			parallel(b, callers, func() error {
				command, err := codec.EncodeCommand(feature.Supported(), inv)
				if err != nil {
					return err
				}
				m := new(node.PartitionResponse)
				err = conn.Invoke(b.Context(), "/bench/Call", &node.PartitionRequest{
					Method: node.PartitionMethod_PARTITION_METHOD_CALL, Command: command,
				}, m)
				if err != nil {
					return err
				}
				_, err = endingFromWire(m.Ending)
				return err
			})
		})
	}
}

// parallel sends b.N requests from the given number of concurrent callers.
func parallel(b *testing.B, callers int, request func() error) {
	var next atomic.Int64
	done := make(chan error, callers)
	if err := request(); err != nil { // connect
		b.Fatal(err)
	}
	b.ResetTimer()
	for range callers {
		go func() {
			for next.Add(1) <= int64(b.N) {
				if err := request(); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}
