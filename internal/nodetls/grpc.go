package nodetls

import (
	"context"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// Credentials returns credentials that pass the name of the other node from its connection to
// requests and streams, see Peer. Connections are authenticated before gRPC gets them.
func Credentials() credentials.TransportCredentials { return passing{} }

// passing are credentials without a handshake.
type passing struct{}

// authInfo is the name of the other node, "" if it is not authenticated.
type authInfo string

// AuthType implements credentials.AuthInfo.
func (authInfo) AuthType() string { return "node" }

func (passing) ClientHandshake(_ context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return conn, authInfo(NodeOf(conn)), nil
}

func (passing) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return conn, authInfo(NodeOf(conn)), nil
}

func (passing) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "node"}
}

func (p passing) Clone() credentials.TransportCredentials { return p }
func (passing) OverrideServerName(string) error           { return nil }

// NodeOf returns the name of the node at the other end of a connection, "" if it is not
// authenticated.
func NodeOf(conn net.Conn) string {
	if c, ok := conn.(interface{ Node() string }); ok {
		return c.Node()
	}
	return ""
}

// Peer returns the name of the node that a request or stream belongs to, "" if it is not
// authenticated.
func Peer(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(authInfo); ok {
			return string(info)
		}
	}
	return ""
}
