package nodelink

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"platform/internal/limits"
	"platform/internal/nodetls"
)

const (
	// dialInterval is the time after which a dial without a result makes another attempt. The
	// kernel repeats a lost SYN only after one second, and then after two and four more.
	dialInterval = 500 * time.Millisecond
	// dialAttempts bounds the concurrent attempts of one dial.
	dialAttempts = 4
	// maxDialDelay is the longest time between two dials, of which the first failed.
	maxDialDelay = 300 * time.Millisecond
	// ackTimeout is how long a peer may leave sent data unacknowledged before the connection
	// is closed. The kernel doubles the time between retransmissions, so that otherwise a
	// connection resumes only seconds after a network failure of seconds.
	ackTimeout = 2 * time.Second

	// keepaliveTime is after how long without a message a node is pinged, and keepaliveTimeout
	// how long it may take to respond.
	keepaliveTime, keepaliveTimeout = 10 * time.Second, 5 * time.Second

	// streamWindow and connWindow bound what arrives before it is read. Without fixed windows gRPC
	// estimates the bandwidth, with a ping and a window update for nearly every small message.
	streamWindow, connWindow = 4 << 20, 8 << 20
)

// dialNode is the dialer of connections between nodes.
func dialNode(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := dialRepeatedly(ctx, dialInterval, func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	})
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		limitUnacknowledged(tcp, ackTimeout)
	}
	return opaqueConn{conn}, nil
}

// Dial prepares a connection to the host:port of another node, which is dialed when it is
// used. security authenticates the nodes to each other; nil: no authentication. Further options
// override those that Dial sets.
func Dial(address string, security *nodetls.Security, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	// The passthrough resolver leaves resolving names to the dialer, which does it each time.
	conn, err := grpc.NewClient("passthrough:///"+address, slices.Concat(dialOptions(security), options)...)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	return conn, nil
}

func dialOptions(security *nodetls.Security) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxDialDelay},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithTransportCredentials(nodetls.Credentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return security.Dial(ctx, func(ctx context.Context) (net.Conn, error) { return dialNode(ctx, addr) })
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.WithInitialWindowSize(streamWindow), grpc.WithInitialConnWindowSize(connWindow),
		grpc.WithDefaultCallOptions(grpc.CallContentSubtype(codecName), grpc.MaxCallRecvMsgSize(limits.Receive)),
	}
}

// ServerOptions returns the options of the gRPC server that nodes connect to.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(limits.Receive),
		grpc.InitialWindowSize(streamWindow), grpc.InitialConnWindowSize(connWindow),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 2 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
	}
}

// opaqueConn hides the type of a connection from gRPC, which would replace ackTimeout with the
// longer timeout of its keepalive.
type opaqueConn struct{ net.Conn }

// dialRepeatedly calls dial every interval until one call has a result, which it returns. It
// cancels the other calls and closes their connections.
func dialRepeatedly(ctx context.Context, interval time.Duration, dial func(context.Context) (net.Conn, error)) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result)
	ctx, cancel := context.WithCancel(ctx)
	var attempts sync.WaitGroup
	defer attempts.Wait()
	defer cancel()
	attempt := func() {
		conn, err := dial(ctx)
		select {
		case results <- result{conn, err}:
		case <-ctx.Done():
			if err == nil {
				_ = conn.Close()
			}
		}
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	attempts.Go(attempt)
	for started := 1; ; {
		select {
		case r := <-results:
			return r.conn, r.err
		case <-tick.C:
			if started < dialAttempts {
				started++
				attempts.Go(attempt)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
