package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"platform/internal/certs"
	"platform/internal/cluster/datadir"
	"platform/internal/cluster/membership"
	"platform/internal/errcode"
	"platform/internal/nodetls"
	"platform/internal/version"
	"platform/metadata"
)

// gossipKeyBytes is the size of the encryption key of gossip.
const gossipKeyBytes = 32

// GossipConfig configures OpenGossip.
type GossipConfig struct {
	Self    datadir.Identity
	Port    net.Addr // of the node port
	Address string   // advertised host:port of the node port
	Streams net.Listener
	Seeds   []string
	KeyFile string // networking.gossip-key-file, may be empty
	Open    bool   // security.mode is open: every user may read KeyFile
	// Security authenticates other nodes; nil: no authentication.
	Security *nodetls.Security
	Server   *Server
	// OnFailed is called when this node must stop because another one owns its name.
	OnFailed func(error)
	Log      *slog.Logger
}

// OpenGossip starts gossip with the other nodes.
func OpenGossip(ctx context.Context, cfg GossipConfig) (*membership.Members, error) {
	key, err := gossipKey(cfg.KeyFile)
	if err != nil {
		return nil, err
	}
	if key != nil {
		if err := certs.CheckKeyFile(cfg.KeyFile, "networking.gossip-key-file", cfg.Open, cfg.Log); err != nil {
			return nil, errcode.New(errcode.RT0002, "configuration: %w", err)
		}
	}
	packets, err := membership.ListenPacket(ctx, cfg.Port)
	if err != nil {
		return nil, errcode.New(errcode.RT0004, "listen for gossip packets (bind-port): %w", err)
	}
	members, err := membership.Open(membership.Config{
		Name: cfg.Self.Node, Incarnation: cfg.Self.Incarnation, ClusterName: cfg.Self.Cluster, Address: cfg.Address,
		Meta:    membership.Meta{Version: version.Version()},
		Streams: cfg.Streams, Packets: packets,
		Seeds: cfg.Seeds, Known: cfg.Server.otherAddresses, Removed: cfg.Server.removed, Former: cfg.Server.former,
		Key: key, Security: cfg.Security, OnFailed: cfg.OnFailed, Logger: cfg.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("start gossip: %w", err)
	}
	return members, nil
}

// otherAddresses returns the addresses of the other nodes in the metadata.
func (s *Server) otherAddresses() []string {
	store := s.Metadata()
	if store == nil {
		return nil
	}
	var known []string
	for _, node := range store.Nodes() {
		if node.Name != s.self.Node {
			known = append(known, string(node.RaftAddress()))
		}
	}
	return known
}

// removed returns the nodes that were removed from the cluster, as far as this node knows.
func (s *Server) removed() (former []membership.Removed) {
	nodes := s.cfg.Nodes
	if store := s.Metadata(); store != nil {
		nodes = store.RemovedNodes()
	}
	for _, n := range nodes {
		if n.Removed {
			former = append(former, membership.Removed{Name: n.Name, Incarnation: n.Incarnation})
		}
	}
	return former
}

// former reports whether a node was removed from the cluster or replaced, as far as this node knows.
func (s *Server) former(name, incarnation string) bool {
	if store := s.Metadata(); store != nil {
		return store.RemovalReason(name, incarnation) != ""
	}
	return metadata.RemovalReason(s.cfg.Nodes, name, incarnation) != ""
}

// gossipKey reads the key from a file, which contains it as bytes or in base64.
func gossipKey(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read networking.gossip-key-file: %w", err)
	}
	if len(raw) == gossipKeyBytes {
		return raw, nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(key) != gossipKeyBytes {
		return nil, fmt.Errorf("networking.gossip-key-file %s: expected %d bytes or their base64 text (head -c %d /dev/urandom | base64)", path, gossipKeyBytes, gossipKeyBytes)
	}
	return key, nil
}
