package metadata

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	pb "platform/proto/metadata"
)

// The audit log is the leaves of a hash tree: a node of level n covers 2^n records. The hash of a
// record is the root over all records up to it, so it proves each of them. When records are
// deleted, the hash of the largest node that covers deleted records only remains; the root can
// thus be computed whichever records are deleted.

// treeNode is a node of the hash tree.
type treeNode struct {
	level uint32
	index uint64 // among the nodes of its level, from 0
	hash  []byte
}

type treeKey struct {
	level uint32
	index uint64
}

func (n *treeNode) key() treeKey { return treeKey{n.level, n.index} }

// end returns the number of the last record that the node covers.
func (n *treeNode) end() uint64 { return (n.index + 1) << n.level }

// Prefixes of what is hashed, so that no kind of node can be confused with another.
const (
	leafPrefix = iota
	innerPrefix
	rootPrefix
)

func leafDigest(content []byte) []byte {
	sum := sha256.Sum256(slices.Concat([]byte{leafPrefix}, content))
	return sum[:]
}

// parent returns the node over two siblings.
func parent(left, right *treeNode) treeNode {
	sum := sha256.Sum256(slices.Concat([]byte{innerPrefix}, left.hash, right.hash))
	return treeNode{left.level + 1, left.index / 2, sum[:]}
}

// peaks are the largest complete nodes over all records so far, in their order. A value is
// immutable.
type peaks []treeNode

// push adds the next node, which begins right after the last record that is covered.
func (p peaks) push(n treeNode) peaks {
	p = slices.Clone(p)
	for len(p) > 0 && p[len(p)-1].level == n.level {
		n = parent(&p[len(p)-1], &n)
		p = p[:len(p)-1]
	}
	return append(p, n)
}

// records returns the number of records that are covered.
func (p peaks) records() uint64 {
	if len(p) == 0 {
		return 0
	}
	return p[len(p)-1].end()
}

// root returns the hash of everything that is covered.
func (p peaks) root() []byte {
	h := sha256.New()
	_, _ = h.Write(binary.BigEndian.AppendUint64([]byte{rootPrefix}, p.records())) // hashes do not fail
	for i := range p {
		_, _ = h.Write(p[i].hash)
	}
	return h.Sum(nil)
}

// maxTreeLevel bounds the levels of nodes that are read.
const maxTreeLevel = 62

// extend pushes a node that was read; an error if it does not continue the tree.
func (p peaks) extend(n treeNode) (peaks, error) {
	covered := p.records()
	if n.level >= maxTreeLevel || n.index>>(maxTreeLevel-n.level) != 0 || n.end()-1<<n.level != covered || len(n.hash) != sha256.Size || len(p) > 0 && p[len(p)-1].level < n.level {
		return nil, fmt.Errorf("the audit log has no record %d, nor a hash of it: records were removed", covered+1)
	}
	return p.push(n), nil
}

func treeNodeToProto(n *treeNode) *pb.AuditNode {
	return &pb.AuditNode{Level: n.level, Index: n.index, Hash: n.hash}
}

func treeNodeFromProto(m *pb.AuditNode) treeNode {
	return treeNode{m.GetLevel(), m.GetIndex(), m.GetHash()}
}

// auditNodeKey returns a key that sorts by the records that are covered.
func auditNodeKey(n *treeNode) string { return fmt.Sprintf("%016x", n.end()) }
