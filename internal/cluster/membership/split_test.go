package membership

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"platform/internal/certs"
	"platform/internal/nodetls"
)

// serveRPC serves gRPC on the node port until the test ends.
func serveRPC(t *testing.T, n *testNode) healthpb.HealthClient {
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(n.ports.RPC)
	}()
	conn, err := grpc.NewClient("passthrough:///"+n.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		server.Stop()
		<-served
	})
	return healthpb.NewHealthClient(conn)
}

func TestOnePortCarriesAllProtocolsUnderLoad(t *testing.T) {
	a := start(t, "a", nil)
	rpc := serveRPC(t, a)
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) })}
	var served, load sync.WaitGroup
	served.Go(func() { _ = web.Serve(a.ports.HTTP) })
	transport := &http.Transport{}
	t.Cleanup(func() { transport.CloseIdleConnections(); _ = web.Close(); served.Wait() })
	client := &http.Client{Transport: transport}

	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 8)
	for range 4 {
		load.Go(func() {
			for ctx.Err() == nil {
				if _, err := rpc.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	// Nodes join and leave while the calls run.
	for range 5 {
		b := start(t, "b", seeds(a))
		b.sees("a", "b")
		a.sees("a", "b")
		resp, err := client.Get("http://" + a.address + "/metrics")
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, errors.Join(err, resp.Body.Close()))
		require.Equal(t, "/metrics", string(body))
		_ = b.Leave(t.Context()) // a busy machine takes longer than it waits
		b.crash()
		a.sees("a")
	}
	cancel()
	load.Wait()
	require.Empty(t, errs)
}

// requireClosed waits until the remote end has closed the connection.
func requireClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	var timeout net.Error
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "connection is still open")
}

func dial(t *testing.T, address, first string) net.Conn {
	t.Helper()
	return dialFrom(t, "127.0.0.1", address, first)
}

func dialFrom(t *testing.T, from, address, first string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, first)
	require.NoError(t, err)
	return conn
}

func TestSilentConnectionsDoNotBlockOthers(t *testing.T) {
	a := start(t, "a", nil)
	rpc := serveRPC(t, a)
	for range 30 {
		dial(t, a.address, "")
		dial(t, a.address, "PR")
	}
	for range 20 { // streams that stop during the handshake
		dial(t, a.address, streamMagic+"half")
	}
	for range 2 * pending {
		dialFrom(t, "127.0.0.2", a.address, "")
	}
	_, err := rpc.Check(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	start(t, "b", seeds(a)).sees("a", "b")
}

func TestSilentConnectionsAreLimited(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := split(l, nil, pending, time.Hour)
	for i := range peekingShare {
		for range pending / peekingShare {
			dialFrom(t, fmt.Sprintf("127.0.0.%d", i+2), l.Addr().String(), "")
		}
	}
	require.Eventually(t, func() bool {
		p.slots.mu.Lock()
		defer p.slots.mu.Unlock()
		return p.slots.taken == pending
	}, time.Minute, time.Millisecond)
	requireClosed(t, dial(t, l.Addr().String(), "PRI "))
	require.NoError(t, p.Close()) // does not wait for silent connections
}

func TestConnectionsWithGarbageAreClosed(t *testing.T) {
	a := start(t, "a", nil)
	for _, garbage := range []string{
		"\x16\x03\x01\x02\x00", "SSH-2.0-x", "\xf4\x04test", strings.Repeat("x", 100),
		streamMagic + strings.Repeat("x", helloBytes),
	} {
		conn := dial(t, a.address, garbage)
		if strings.HasPrefix(garbage, streamMagic) {
			status := make([]byte, 1)
			_, err := io.ReadFull(conn, status)
			require.NoError(t, err)
			require.Equal(t, statusOtherCluster, status[0])
		}
		requireClosed(t, conn)
	}
	// UDP packets with garbage are dropped.
	udp := dialUDP(t, a.address)
	for _, garbage := range [][]byte{{}, {packetVersion}, make([]byte, 2000), encodePacket(a.selfMember().identity(), []byte("garbage"))} {
		_, err := udp.Write(garbage)
		require.NoError(t, err)
	}
	start(t, "b", seeds(a)).sees("a", "b")
}

func dialUDP(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("udp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestPortsCloseIndividuallyAndTogether(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := Split(l, nil, pending)
	require.NoError(t, p.HTTP.Close())
	require.NoError(t, p.HTTP.Close())
	_, err = p.HTTP.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	requireClosed(t, dial(t, l.Addr().String(), "GET / HTTP/1.1\r\n"))

	dial(t, l.Addr().String(), "PRI * HTTP/2.0")
	conn, err := p.RPC.Accept()
	require.NoError(t, err)
	require.Equal(t, l.Addr(), p.RPC.Addr())
	require.NoError(t, l.Close()) // by its creator
	_, err = p.Gossip.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, p.Close())

	// Accepted connections stay open and deliver their first bytes.
	head := make([]byte, 14)
	_, err = io.ReadFull(conn, head)
	require.NoError(t, err)
	require.Equal(t, "PRI * HTTP/2.0", string(head))
	require.NoError(t, conn.Close())
}

// The connection of a node that enrolls is delivered to the listener for them only, whatever it
// sends.
func TestEnrollingConnectionsReachNoOtherProtocol(t *testing.T) {
	ca, err := certs.NewAuthority("c", time.Hour)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key, err := ca.IssueNode("n1", time.Hour)
	require.NoError(t, err)
	files := certs.Files{Cert: filepath.Join(dir, "crt"), Key: filepath.Join(dir, "key"), CA: filepath.Join(dir, "ca")}
	for path, content := range map[string][]byte{files.Cert: cert, files.Key: key, files.CA: ca.CertPEM()} {
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
	security, err := nodetls.Open(nodetls.Config{Mode: nodetls.Require, Cluster: "c", Node: "n1", Files: files, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	security.AdmitEnrolling(func(net.Addr) bool { return true })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := Split(l, security, pending)
	reached := make(chan string, 10)
	for name, listener := range map[string]net.Listener{"rpc": p.RPC, "http": p.HTTP, "gossip": p.Gossip} {
		go func() {
			if _, err := listener.Accept(); err == nil {
				reached <- name
			}
		}()
	}
	for _, first := range []string{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET /metrics HTTP/1.1\r\n\r\n", streamMagic, "\x16\x03\x01"} {
		raw, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		conn, err := nodetls.Enroll(t.Context(), raw, "c", sha256.Sum256(ca.Cert.Raw))
		require.NoError(t, err)
		_, err = io.WriteString(conn, first)
		require.NoError(t, err)
		accepted, err := p.Enroll.Accept()
		require.NoError(t, err)
		text := make([]byte, len(first))
		_, err = io.ReadFull(accepted, text)
		require.NoError(t, err)
		require.Equal(t, first, string(text))
		require.NoError(t, errors.Join(conn.Close(), accepted.Close()))
	}
	require.NoError(t, p.Close())
	require.Empty(t, reached)
}
