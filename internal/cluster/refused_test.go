package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"platform/internal/nodetls"
	nodepb "platform/proto/node"
)

// certified is a connection of a node with a certificate.
type certified struct {
	net.Conn
	node string
}

func (c certified) Node() string { return c.node }

func authenticated(t *testing.T, node string) context.Context {
	_, info, err := nodetls.Credentials().ServerHandshake(certified{node: node})
	require.NoError(t, err)
	return peer.NewContext(t.Context(), &peer.Peer{AuthInfo: info})
}

// Nodes that are refused determine neither the number nor the length of the log messages about it.
func TestRefusedNodesDoNotFillTheLog(t *testing.T) {
	long := strings.Repeat("\n", 1<<20)
	for name, refused := range map[string]func(t *testing.T, s *Server, i int) error{
		"requests in the name of another node": func(t *testing.T, s *Server, i int) error {
			info := &grpc.UnaryServerInfo{FullMethod: "/node.Cluster/Join"}
			_, err := s.admit(authenticated(t, "n2"), &nodepb.JoinRequest{Name: fmt.Sprint(i, long)}, info, nil)
			return err
		},
		"certificates for another node": func(t *testing.T, s *Server, i int) error {
			return s.mayCertify(authenticated(t, "n2"), fmt.Sprint(i, long))
		},
		"certificates without one": func(t *testing.T, s *Server, i int) error {
			return s.mayCertify(t.Context(), fmt.Sprint(i, long))
		},
		"nodes of other clusters": func(_ *testing.T, s *Server, i int) error {
			return errors.New(s.foreign(fmt.Sprint(i, long)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // a busy machine takes longer than messages are counted for
				var log bytes.Buffer
				s := NewServer(ServerConfig{Log: slog.New(slog.NewTextHandler(&log, nil))})
				for i := range 100 {
					require.Error(t, refused(t, s, i))
				}
				require.Equal(t, maxRefusals, strings.Count(log.String(), "refused"), log.String())
				require.Less(t, log.Len(), maxRefusals*1000)
			})
		})
	}
}
