package nodelink

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// closableConn records that it was closed.
type closableConn struct {
	net.Conn
	closed atomic.Bool
}

func (c *closableConn) Close() error {
	c.closed.Store(true)
	return nil
}

func TestLostDialIsRepeated(t *testing.T) {
	var attempts atomic.Int32
	want := new(closableConn)
	conn, err := dialRepeatedly(t.Context(), time.Millisecond, func(ctx context.Context) (net.Conn, error) {
		if attempts.Add(1) < 3 { // its SYN is lost
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return want, nil
	})
	require.NoError(t, err)
	require.Same(t, want, conn)
	require.False(t, want.closed.Load())
}

// TestSlowDialIsNotAbandoned requires that a round trip may take longer than the interval.
func TestSlowDialIsNotAbandoned(t *testing.T) {
	var attempts atomic.Int32
	first, late := new(closableConn), new(closableConn)
	all := make(chan struct{})
	conn, err := dialRepeatedly(t.Context(), time.Millisecond, func(ctx context.Context) (net.Conn, error) {
		switch attempts.Add(1) {
		case 1:
			<-all
			return first, nil
		case dialAttempts:
			close(all)
		}
		<-ctx.Done()
		return late, nil
	})
	require.NoError(t, err)
	require.Same(t, first, conn)
	require.False(t, first.closed.Load())
	require.True(t, late.closed.Load())
	require.EqualValues(t, dialAttempts, attempts.Load())
}

func TestRefusedDialFailsImmediately(t *testing.T) {
	refused := errors.New("refused")
	_, err := dialRepeatedly(t.Context(), time.Hour, func(context.Context) (net.Conn, error) { return nil, refused })
	require.ErrorIs(t, err, refused)

	ctx, cancel := context.WithCancel(t.Context())
	_, err = dialRepeatedly(ctx, time.Hour, func(ctx context.Context) (net.Conn, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
}

// TestUnacknowledgedDataClosesAConnection requires the timeout on connections between nodes,
// also after gRPC has configured them.
func TestUnacknowledgedDataClosesAConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	conn, err := dialNode(t.Context(), l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, known := conn.(*net.TCPConn)
	require.False(t, known, "gRPC would replace the timeout")
	tcp := conn.(opaqueConn).Conn.(*net.TCPConn)
	require.Equal(t, ackTimeout, unacknowledgedLimit(t, tcp))
}
