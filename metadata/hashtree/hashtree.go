// Package hashtree is the hash tree over the records of the audit log. The records are its leaves,
// and a node of level n covers 2^n of them. The hash of a record is the root over all records up to
// it, so it proves each of them. When records are deleted, the hash of the largest node that covers
// deleted records only remains; the root can thus be computed whichever records are deleted.
package hashtree

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

// Node is a node of the tree.
type Node struct {
	Level uint32
	Index uint64 // among the nodes of its level, from 0
	Hash  []byte
}

// Key identifies a node.
type Key struct {
	Level uint32
	Index uint64
}

// Key returns the key of the node.
func (n *Node) Key() Key { return Key{n.Level, n.Index} }

// End returns the number of the last record that the node covers.
func (n *Node) End() uint64 { return (n.Index + 1) << n.Level }

// Prefixes of what is hashed, so that no kind of node can be confused with another.
const (
	leafPrefix = iota
	innerPrefix
	rootPrefix
)

// LeafHash returns the hash of a leaf.
func LeafHash(content []byte) []byte {
	sum := sha256.Sum256(slices.Concat([]byte{leafPrefix}, content))
	return sum[:]
}

// Parent returns the node over two siblings.
func Parent(left, right *Node) Node {
	sum := sha256.Sum256(slices.Concat([]byte{innerPrefix}, left.Hash, right.Hash))
	return Node{left.Level + 1, left.Index / 2, sum[:]}
}

// Peaks are the largest complete nodes over all records so far, in their order. A value is
// immutable.
type Peaks []Node

// Push adds the next node, which begins right after the last record that is covered.
func (p Peaks) Push(n Node) Peaks {
	p = slices.Clone(p)
	for len(p) > 0 && p[len(p)-1].Level == n.Level {
		n = Parent(&p[len(p)-1], &n)
		p = p[:len(p)-1]
	}
	return append(p, n)
}

// Records returns the number of records that are covered.
func (p Peaks) Records() uint64 {
	if len(p) == 0 {
		return 0
	}
	return p[len(p)-1].End()
}

// Root returns the hash of everything that is covered.
func (p Peaks) Root() []byte {
	h := sha256.New()
	_, _ = h.Write(binary.BigEndian.AppendUint64([]byte{rootPrefix}, p.Records())) // hashes do not fail
	for i := range p {
		_, _ = h.Write(p[i].Hash)
	}
	return h.Sum(nil)
}

// maxTreeLevel bounds the levels of nodes that are read.
const maxTreeLevel = 62

// Extend pushes a node that was read; an error if it does not continue the tree.
func (p Peaks) Extend(n Node) (Peaks, error) {
	covered := p.Records()
	valid := n.Level < maxTreeLevel && n.Index>>(maxTreeLevel-n.Level) == 0 && len(n.Hash) == sha256.Size
	if !valid || n.Index<<n.Level != covered || len(p) > 0 && p[len(p)-1].Level < n.Level {
		return nil, fmt.Errorf("the audit log has no record %d, nor a hash of it: records were removed", covered+1)
	}
	return p.Push(n), nil
}
