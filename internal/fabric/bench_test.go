package fabric

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"platform/internal/feature"
	"platform/internal/raftgroup"
	"platform/partition"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/node"
)

// instant is a leader that answers at once.
func instant() *fake {
	p := newFake(true)
	value := []byte(`"Hello Sarah!"`)
	p.call = func(_ context.Context, inv *machine.Invoke) (partition.Ending, machine.Outcome, error) {
		return partition.Ending{Target: inv.Target, Result: journal.Result{Value: value}}, machine.Outcome{}, nil
	}
	return p
}

// leader is an instant one that does not take a lock either.
type leader struct{ *fake }

func (leader) Leading() bool { return true }

func (l leader) Call(ctx context.Context, inv *machine.Invoke) (partition.Ending, machine.Outcome, error) {
	return l.call(ctx, inv)
}

// BenchmarkLocal is what a handle adds to asking the replica on this node.
func BenchmarkLocal(b *testing.B) {
	var p Local = leader{instant()}
	handle := NewDirectory(1, DirectoryConfig{Local: only(p)}).Partition(0)
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

// BenchmarkRemote is a call of a replica on another node, both in this process, by
// one caller and by many at once.
func BenchmarkRemote(b *testing.B) {
	for name, callers := range map[string]int{"one": 1, "many": 128} {
		b.Run(name, func(b *testing.B) {
			r, _ := pair(b, instant())
			inv := invocation(1)
			b.ReportAllocs()
			parallel(b, callers, func() error {
				_, _, err := r.Call(b.Context(), inv)
				return err
			})
		})
	}
}

// BenchmarkUnary is the same with a gRPC call for each request, for comparison.
func BenchmarkUnary(b *testing.B) {
	p := instant()
	ask := func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		req := new(node.PartitionRequest)
		if err := decode(req); err != nil {
			return nil, err
		}
		return srv.(*Server).answer(ctx, req), nil
	}
	for name, callers := range map[string]int{"one": 1, "many": 128} {
		b.Run(name, func(b *testing.B) {
			lis, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			n := serveNode(b, lis, "c", only(p), func(s *grpc.Server, server *Server) {
				s.RegisterService(&grpc.ServiceDesc{
					ServiceName: "bench", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "Ask", Handler: ask}},
				}, server)
			})
			conn, err := grpc.NewClient("passthrough:///"+n.address,
				append(raftgroup.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
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
				err = conn.Invoke(b.Context(), "/bench/Ask", &node.PartitionRequest{
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

// parallel asks b.N times, with that many callers at once.
func parallel(b *testing.B, callers int, ask func() error) {
	var next atomic.Int64
	done := make(chan error, callers)
	if err := ask(); err != nil { // connect
		b.Fatal(err)
	}
	b.ResetTimer()
	for range callers {
		go func() {
			for next.Add(1) <= int64(b.N) {
				if err := ask(); err != nil {
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
