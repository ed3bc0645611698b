package nodelink

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"platform/proto/node"
)

// recordedConn records what is written to a connection.
type recordedConn struct {
	net.Conn
	mu      sync.Mutex
	written bytes.Buffer
}

func (c *recordedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.written.Write(b)
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// frames counts the written HTTP/2 frames by type, after a preface of that many bytes.
func (c *recordedConn) frames(preface int) map[byte]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := make(map[byte]int)
	for b := c.written.Bytes()[preface:]; len(b) > 0; {
		head := binary.BigEndian.Uint32(b) // length and type
		counts[byte(head)]++
		b = b[9+head>>8:]
	}
	return counts
}

// recordedListener passes on the connections of a listener.
type recordedListener struct {
	net.Listener
	conns chan *recordedConn
}

func (l *recordedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &recordedConn{Conn: conn}
	l.conns <- c
	return c, nil
}

// echoes responds to each frame of a stream with the frame.
type echoes struct {
	node.UnimplementedRaftTransportServer
}

func (echoes) Exchange(stream node.RaftTransport_ExchangeServer) error {
	for {
		f, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := stream.Send(f); err != nil {
			return err
		}
	}
}

// TestSmallMessagesCauseNoOtherFrames requires that a request and its response are one frame
// each: gRPC's estimates of the bandwidth would add two frames to most of them.
func TestSmallMessagesCauseNoOtherFrames(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &recordedListener{tcp, make(chan *recordedConn, 1)}
	server := grpc.NewServer(ServerOptions()...)
	node.RegisterRaftTransportServer(server, echoes{})
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	defer serving.Wait()
	defer server.Stop()

	dialed := make(chan *recordedConn, 1)
	conn, err := Dial(tcp.Addr().String(), nil, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := dialNode(ctx, addr)
			c := &recordedConn{Conn: conn}
			dialed <- c
			return c, err
		}))
	require.NoError(t, err)
	defer conn.Close()
	stream, err := node.NewRaftTransportClient(conn).Exchange(t.Context())
	require.NoError(t, err)
	const messages = 200
	for i := range uint64(messages) {
		require.NoError(t, stream.Send(&node.RaftFrame{Sequence: i + 1}))
		f, err := stream.Recv()
		require.NoError(t, err)
		require.Equal(t, i+1, f.Sequence)
	}
	const data, ping, windowUpdate = 0x0, 0x6, 0x8
	for _, sent := range []map[byte]int{(<-dialed).frames(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")), (<-l.conns).frames(0)} {
		require.Equal(t, messages, sent[data])
		require.Zero(t, sent[ping])
		require.LessOrEqual(t, sent[windowUpdate], 1, "when the connection is opened")
	}
}
