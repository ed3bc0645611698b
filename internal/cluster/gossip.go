package node

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"platform/internal/diskspace"
	"platform/internal/errcode"
	"platform/internal/membership"
	"platform/internal/version"
)

// gossipKeyBytes is the size of the key that the gossip is encrypted with.
const gossipKeyBytes = 32

// openMembers begins to look for the other nodes.
func (n *Node) openMembers(ctx context.Context) (err error) {
	key, err := gossipKey(n.cfg.Networking.GossipKeyFile)
	if err != nil {
		return err
	}
	packets, err := membership.ListenPacket(ctx, n.port.Addr())
	if err != nil {
		return errcode.New(errcode.RT0004, "listen for packets of other nodes (bind-port): %w", err)
	}
	n.members, err = membership.Open(membership.Config{
		Name: n.self.Node, Incarnation: n.self.Incarnation, ClusterName: n.self.Cluster, Address: n.fabricAddress(),
		Meta:    membership.Meta{Version: version.Version()},
		Streams: n.ports.Gossip, Packets: packets,
		Seeds: n.seeds(), Known: n.knownAddresses,
		Key: key, OnFailed: n.fail, Logger: n.log,
	})
	if err != nil {
		return fmt.Errorf("look for other nodes: %w", err)
	}
	return nil
}

// knownAddresses are those of the nodes that the metadata name.
func (n *Node) knownAddresses() []string {
	store := n.cluster.store.Load()
	if store == nil {
		return nil
	}
	var known []string
	for _, node := range store.Nodes() {
		if node.Name != n.self.Node {
			known = append(known, string(node.RaftAddress()))
		}
	}
	return known
}

// gossipKey reads the key from a file, which has its bytes or their base64 text.
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

// leaveMembers tells the others that this node stops, and closes the sockets.
func (n *Node) leaveMembers(ctx context.Context) error {
	return errors.Join(n.members.Leave(ctx), n.members.Close())
}

// introduce tells the others that this node is part of the cluster.
func (n *Node) introduce() error {
	cluster, _ := n.metadata.Cluster()
	var id uint32
	for _, node := range n.metadata.Nodes() {
		if node.Name == n.self.Node {
			id = node.ID
		}
	}
	return n.members.UpdateMeta(func(m *membership.Meta) {
		m.ClusterID, m.NodeID = cluster.ID, id
		m.Draining = n.disk.Level() >= diskspace.Short // it may have been so before there was anybody to tell
	})
}
