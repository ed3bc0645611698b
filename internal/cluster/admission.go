package cluster

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"platform/internal/nodetls"
	"platform/metadata"
	"platform/partition"
	nodepb "platform/proto/node"
)

// errRefused is the response to a node that is refused. It reveals nothing about the cluster.
var errRefused = status.Error(codes.PermissionDenied, "refused; the log of that node has the reason")

// ServerOptions returns the options of the gRPC server of the node port that let authenticated
// nodes make only the requests that they may make.
func (s *Server) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.Creds(nodetls.Credentials()), grpc.UnaryInterceptor(s.admit)}
}

// admit rejects requests about the cluster by nodes that are not members, and requests in the
// name of another node.
func (s *Server) admit(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if node := nodetls.Peer(ctx); node != "" {
		if err := s.admissible(node, req); err != nil {
			if skipped, due := s.refusals.Admit(node, time.Now()); due {
				s.log.Warn("request of a node refused", "node", node, "request", path.Base(info.FullMethod), "err", err, "repeated", skipped)
			}
			return nil, errRefused
		}
	}
	return handle(ctx, req)
}

func (s *Server) admissible(node string, req any) error {
	named, ok := req.(interface{ GetName() string })
	switch req.(type) {
	case *nodepb.BallotRequest, *nodepb.JoinRequest, *nodepb.StandingRequest: // of nodes that are no members yet, or no longer
		if !ok || named.GetName() != node {
			return fmt.Errorf("it is made in the name of node %.64q", named.GetName())
		}
		return nil
	}
	if store := s.store.Load(); store != nil && !hasNode(store, node) {
		return fmt.Errorf("node %s is not a member", node)
	}
	return nil
}

// Authorize returns an error if a node was removed from the cluster. A node that this one does
// not know is accepted: this one may be behind.
func (s *Server) Authorize(node, incarnation string) error {
	store := s.store.Load()
	if store == nil {
		return nil
	}
	if reason := store.RemovalReason(node, incarnation); reason != "" {
		return fmt.Errorf("node %s was removed: %s", node, reason)
	}
	return nil
}

// AuthorizeMember returns an error unless a node is a member of the cluster.
func (s *Server) AuthorizeMember(node, incarnation string) error {
	if err := s.Authorize(node, incarnation); err != nil {
		return err
	}
	if store := s.store.Load(); store != nil && !hasNode(store, node) {
		return fmt.Errorf("node %s is not a member", node)
	}
	return nil
}

// MayServe reports whether the metadata, as known by this node, give a node a replica of a
// Raft group. If this node has missed the changes since a node joined the group, and that one is
// the leader now, only that one can tell. So while no leader is heard, every member of the cluster
// is accepted for a partition, since a leader that is being drained is no longer in the table, and
// every node that was not removed for the metadata.
func (s *Server) MayServe(group uint32, node string, leaderless bool) bool {
	store := s.store.Load()
	if store == nil {
		return true
	}
	if group == metadata.GroupID {
		return leaderless || hasNode(store, node)
	}
	if leaderless {
		return hasNode(store, node)
	}
	layout, _ := store.Layout()
	return slices.ContainsFunc(layout.Partitions, func(p metadata.Partition) bool {
		return partition.GroupID(p.ID) == group && slices.ContainsFunc(p.Replicas, func(id uint32) bool {
			n, known := layout.Node(id)
			return known && n.Name == node
		})
	})
}

// hasNode reports whether a node is a member, or this node does not know any yet.
func hasNode(store *metadata.Store, name string) bool {
	members := store.Nodes()
	return len(members) == 0 || slices.ContainsFunc(members, func(n metadata.Node) bool { return n.Name == name })
}
