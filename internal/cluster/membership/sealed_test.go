package membership

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/certs"
	"platform/internal/nodetls"
)

// security returns what secures a node of a cluster, with keys of the authority.
func security(t *testing.T, ca *certs.Authority, node string, mode nodetls.Mode) *nodetls.Security {
	return securityOf(t, ca, "c", node, mode)
}

func securityOf(t *testing.T, ca *certs.Authority, cluster, node string, mode nodetls.Mode) *nodetls.Security {
	dir := t.TempDir()
	cert, key, err := ca.IssueNode(node, 30*24*time.Hour)
	require.NoError(t, err)
	packets, err := ca.PacketKey()
	require.NoError(t, err)
	for name, content := range map[string][]byte{"crt": cert, "key": key, "ca": ca.CertPEM(), "packets": packets} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	s, err := nodetls.Open(nodetls.Config{
		Mode: mode, Cluster: cluster, Node: node, PacketKeyFile: filepath.Join(dir, "packets"), Log: slog.New(slog.DiscardHandler),
		Files: certs.Files{Cert: filepath.Join(dir, "crt"), Key: filepath.Join(dir, "key"), CA: filepath.Join(dir, "ca")},
	})
	require.NoError(t, err)
	return s
}

func packetTransport(name string, s *nodetls.Security) *transport {
	return &transport{self: hello{target: identityOf(name, "1")}, security: s, removed: func() []Removed { return nil }, endpoints: map[identity]endpoint{}, sealing: map[identity]time.Time{}}
}

// Nodes of all modes that a cluster may have at the same time understand each other's packets.
// A node that requires encryption takes no other packets.
func TestPacketsBetweenNodesOfDifferentModes(t *testing.T) {
	ca, err := certs.NewAuthority("c", time.Hour)
	require.NoError(t, err)
	modes := []nodetls.Mode{nodetls.Off, nodetls.Allow, nodetls.Require}
	for _, from := range modes {
		for _, to := range modes {
			if from == nodetls.Off && to == nodetls.Require || from == nodetls.Require && to == nodetls.Off {
				continue
			}
			a, b := packetTransport("a", security(t, ca, "a", from)), packetTransport("b", security(t, ca, "b", to))
			for _, x := range []*transport{a, b} {
				x.endpoints[a.self.target], x.endpoints[b.self.target] = endpoint{}, endpoint{}
			}
			if to == nodetls.Require { // its first packet announces that it encrypts
				_, ok := a.decode(b.encode(a.self.target, []byte("ping")))
				require.True(t, ok)
			}
			packet := a.encode(b.self.target, []byte("hello"))
			payload, ok := b.decode(packet)
			require.True(t, ok, "%v to %v", from, to)
			require.Equal(t, "hello", string(payload))
			if from == nodetls.Require {
				require.NotContains(t, string(packet), "hello")
			}
		}
	}
}

func TestPacketsOfStrangersAreDropped(t *testing.T) {
	ca, err := certs.NewAuthority("c", time.Hour)
	require.NoError(t, err)
	other, err := certs.NewAuthority("c", time.Hour)
	require.NoError(t, err)
	n := packetTransport("a", security(t, ca, "a", nodetls.Require))
	stranger := packetTransport("b", security(t, other, "b", nodetls.Require))
	member := packetTransport("b", security(t, ca, "b", nodetls.Require))
	valid := member.encode(n.self.target, []byte("x"))
	_, ok := n.decode(valid)
	require.True(t, ok)
	packets := [][]byte{
		nil, {packetVersion}, {sealedVersion}, encodePacket(n.self.target, []byte("x")), stranger.encode(n.self.target, []byte("x")),
		member.encode(stranger.self.target, []byte("x")), valid[:len(valid)-1], valid[:sealedHeaderBytes+3],
	}
	for i := range valid {
		changed := append([]byte(nil), valid...)
		changed[i] ^= 1
		packets = append(packets, changed)
	}
	for _, packet := range packets {
		_, ok := n.decode(packet)
		require.False(t, ok, "%x", packet)
	}
	require.Empty(t, n.sealing)
}

// The node port distinguishes TLS from other protocols, and a node that requires it closes gossip
// streams and RPC connections of strangers.
func TestTheNodePortRequiresTLS(t *testing.T) {
	ca, err := certs.NewAuthority("c", time.Hour)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := security(t, ca, "a", nodetls.Require)
	p := Split(l, server, pending)
	defer p.Close()
	for _, begin := range []string{streamMagic, "PRI * HTTP/2.0\r\n\r\n", "\x16\x03\x01\x00\x05hello"} {
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		_, err = conn.Write([]byte(begin))
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
		for err == nil { // an alert may come first
			_, err = conn.Read(make([]byte, 64))
		}
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, begin)
		conn.Close()
	}
	require.EqualValues(t, 3, server.Refused())
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	require.ErrorContains(t, hello{}.clientHandshake(conn, 30*time.Second), "or has no certificate (security.node-tls)")
	conn.Close()

	client := security(t, ca, "b", nodetls.Require)
	for begin, to := range map[string]net.Listener{streamMagic: p.Gossip, "PRI ": p.RPC, "GET ": p.HTTP} {
		conn, err := client.Dial(t.Context(), func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", l.Addr().String())
		})
		require.NoError(t, err)
		require.Equal(t, "a", nodetls.NodeOf(conn))
		_, err = conn.Write([]byte(begin))
		require.NoError(t, err)
		accepted, err := to.Accept()
		require.NoError(t, err)
		require.Equal(t, "b", nodetls.NodeOf(accepted))
		accepted.Close()
		conn.Close()
	}
}
