package metadata

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"platform/metadata/hashtree"
	pb "platform/proto/metadata"
)

// Bounds of the audit log. All replicas must keep the same records: another bound needs a feature
// level of its own.
const (
	// MaxAuditRecords is the number of records that are kept.
	MaxAuditRecords = 20_000
	// MaxAuditBytes is the size of the records that are kept.
	MaxAuditBytes = 64 << 20
	// auditOverhead is what a record takes besides its encoding.
	auditOverhead = 128
)

// auditLog is the index of the audit log. When the log is full, the oldest record of the principal
// whose records take the most bytes is deleted, so no principal can displace the records of
// others. Only the goroutine that applies entries uses it, and changes it in place.
type auditLog struct {
	peaks  hashtree.Peaks
	owners map[string]*auditOwner  // principals
	nodes  map[hashtree.Key][]byte // of the tree, in place of deleted records
	count  int
	bytes  int64
}

// auditOwner has the kept records of a principal, the oldest first.
type auditOwner struct {
	records []auditEntry
	bytes   int64
}

type auditEntry struct {
	sequence uint64
	digest   []byte
	bytes    int64
}

func newAuditLog() *auditLog {
	return &auditLog{owners: map[string]*auditOwner{}, nodes: map[hashtree.Key][]byte{}}
}

func (l *auditLog) add(principal string, e auditEntry) {
	owner := l.owners[principal]
	if owner == nil {
		owner = &auditOwner{}
		l.owners[principal] = owner
	}
	owner.records = append(owner.records, e)
	owner.bytes += e.bytes
	l.count++
	l.bytes += e.bytes
}

func (l *auditLog) full() bool { return l.count > MaxAuditRecords || l.bytes > MaxAuditBytes }

// removeOne removes the oldest record of the principal with the most bytes.
func (l *auditLog) removeOne() auditEntry {
	var name string
	var most *auditOwner
	for candidate, owner := range l.owners {
		if most == nil || owner.bytes > most.bytes || owner.bytes == most.bytes && owner.records[0].sequence < most.records[0].sequence {
			name, most = candidate, owner
		}
	}
	oldest := most.records[0]
	most.records, most.bytes = most.records[1:], most.bytes-oldest.bytes
	if len(most.records) == 0 {
		delete(l.owners, name)
	}
	l.count--
	l.bytes -= oldest.bytes
	return oldest
}

// record appends a record, whose number and hashes it sets, and deletes records while the log is too
// large.
func (d *draft) record(r *AuditRecord) error {
	l := d.audit
	r.Sequence = l.peaks.Records() + 1
	if len(l.peaks) > 0 {
		r.Previous = l.peaks.Root()
	}
	digest, err := r.digest()
	if err != nil {
		return err
	}
	l.peaks = l.peaks.Push(hashtree.Node{Index: r.Sequence - 1, Hash: digest})
	r.Hash = l.peaks.Root()
	value, err := auditToProto(r).MarshalVT()
	if err != nil {
		return err
	}
	d.write(write{table: tableAudit, key: auditKey(r.Sequence), value: sealed(value)})
	l.add(r.Action.Principal, auditEntry{r.Sequence, digest, int64(len(value)) + auditOverhead})
	for l.full() {
		if err := d.deleteAudit(l.removeOne()); err != nil {
			return err
		}
	}
	return nil
}

// deleteAudit deletes a record and leaves the hash of the largest node without kept records.
func (d *draft) deleteAudit(e auditEntry) error {
	d.deleteRecord(tableAudit, auditKey(e.sequence))
	n := hashtree.Node{Index: e.sequence - 1, Hash: e.digest}
	for {
		sibling := hashtree.Node{Level: n.Level, Index: n.Index ^ 1}
		hash, deleted := d.audit.nodes[sibling.Key()]
		if !deleted {
			break
		}
		sibling.Hash = hash
		delete(d.audit.nodes, sibling.Key())
		d.deleteRecord(tableAuditNodes, auditNodeKey(&sibling))
		if sibling.Index < n.Index {
			n = hashtree.Parent(&sibling, &n)
		} else {
			n = hashtree.Parent(&n, &sibling)
		}
	}
	d.audit.nodes[n.Key()] = n.Hash
	return d.put(tableAuditNodes, auditNodeKey(&n), treeNodeToProto(&n))
}

// readAuditLog reads the index. The log is not verified here: VerifyAudit reports damage.
func readAuditLog(tx *bbolt.Tx) (*auditLog, error) {
	l := newAuditLog()
	err := eachAudit(tx, func(r *AuditRecord, size int) (err error) {
		digest, err := r.digest()
		if err != nil {
			return err
		}
		l.add(r.Action.Principal, auditEntry{r.Sequence, digest, int64(size) + auditOverhead})
		l.peaks, err = l.peaks.Extend(hashtree.Node{Index: r.Sequence - 1, Hash: digest})
		return err
	}, func(n hashtree.Node) (err error) {
		l.nodes[n.Key()] = n.Hash
		l.peaks, err = l.peaks.Extend(n)
		return err
	})
	return l, err
}

// eachAudit calls one of two functions for each record, with its encoded size, and each node of
// the tree, in the order of the log.
func eachAudit(tx *bbolt.Tx, onRecord func(r *AuditRecord, size int) error, onNode func(hashtree.Node) error) error {
	records, nodes := tx.Bucket([]byte(tableAudit)).Cursor(), tx.Bucket([]byte(tableAuditNodes)).Cursor()
	recordKey, record := records.First()
	nodeKey, node := nodes.First()
	for recordKey != nil || nodeKey != nil {
		var err error
		if nodeKey == nil || recordKey != nil && string(recordKey) < string(nodeKey) {
			var r AuditRecord
			if r, err = readAudit(record); err == nil {
				err = onRecord(&r, len(record)-checksumSize)
			}
			recordKey, record = records.Next()
		} else {
			var value []byte
			var m pb.AuditNode
			if value, err = unsealed(node); err == nil {
				if err = m.UnmarshalVT(value); err == nil {
					err = onNode(treeNodeFromProto(&m))
				}
			}
			nodeKey, node = nodes.Next()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", tableAudit, err)
		}
	}
	return nil
}

// AuditState is the result of a verification of the audit log.
type AuditState struct {
	Kept, Deleted int    // numbers of records
	First, Last   uint64 // numbers of the first and the last kept record
	Hash          []byte // of the last record
	Problem       error  // nil: no record was changed, and none removed other than to make room
}

// VerifyAudit verifies the audit log of this node.
func (s *Store) VerifyAudit() (state AuditState, err error) {
	if s.replica == nil {
		return state, errors.New("read the audit log: there is no state file")
	}
	var v auditVerifier
	err = s.replica.fsm.db.bolt.View(func(tx *bbolt.Tx) error {
		return eachAudit(tx, func(r *AuditRecord, _ int) error {
			v.record(r)
			return nil
		}, func(n hashtree.Node) error {
			v.node(n)
			return nil
		})
	})
	if err != nil {
		return state, fmt.Errorf("read the audit log: %w", err)
	}
	return v.AuditState, nil
}

// auditVerifier recomputes the hash tree.
type auditVerifier struct {
	AuditState
	peaks hashtree.Peaks
}

func (v *auditVerifier) node(n hashtree.Node) {
	v.Deleted += 1 << n.Level
	v.extend(n)
}

func (v *auditVerifier) record(r *AuditRecord) {
	v.Kept++
	if v.First == 0 {
		v.First = r.Sequence
	}
	v.Last, v.Hash = r.Sequence, r.Hash
	digest, err := r.digest()
	if err != nil {
		v.fail(err)
		return
	}
	v.extend(hashtree.Node{Index: r.Sequence - 1, Hash: digest})
	if v.Problem == nil && string(v.peaks.Root()) != string(r.Hash) {
		v.fail(fmt.Errorf("record %d of the audit log does not match its hash: it, or one before it, was changed", r.Sequence))
	}
}

func (v *auditVerifier) extend(n hashtree.Node) {
	if v.Problem != nil {
		return
	}
	next, err := v.peaks.Extend(n)
	if err != nil {
		v.fail(err)
		return
	}
	v.peaks = next
}

func (v *auditVerifier) fail(err error) {
	if v.Problem == nil {
		v.Problem = err
	}
}

func treeNodeToProto(n *hashtree.Node) *pb.AuditNode {
	return &pb.AuditNode{Level: n.Level, Index: n.Index, Hash: n.Hash}
}

func treeNodeFromProto(m *pb.AuditNode) hashtree.Node {
	return hashtree.Node{Level: m.GetLevel(), Index: m.GetIndex(), Hash: m.GetHash()}
}

// auditNodeKey returns a key that sorts by the records that are covered.
func auditNodeKey(n *hashtree.Node) string { return fmt.Sprintf("%016x", n.End()) }
