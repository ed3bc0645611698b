package metadata

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"platform/internal/feature"
	"platform/metadata/hashtree"
	pb "platform/proto/metadata"
)

// Bounds of the texts of an audit record.
const (
	maxAuditText   = 512
	maxAuditObject = 8 << 10
	// MaxAuditObjects is the number of invocations that a record names.
	MaxAuditObjects  = 1000
	maxAuditObjectID = 128
)

// Action is what a client requested of the admin API.
type Action struct {
	Principal string   // name of the token; empty if the server does not authenticate
	Token     string   // ID
	Address   string   // of the client
	Node      string   // that received the request
	Action    string   // method and route
	Object    string   // path of the request, and what it creates
	Status    uint32   // HTTP status of the response; 0: see Outcome
	Outcome   string   // why it was rejected or failed, or that it was a dry run; empty: it succeeded
	Reason    string   // that the client gave
	Objects   []string // invocations of a batch
	// Omitted is the number of requests of the principal to this node that changed nothing and
	// were not recorded since its last record.
	Omitted uint32
}

// AuditRecord is a record of the audit log.
type AuditRecord struct {
	Sequence      uint64 // from 1
	At            time.Time
	Action        Action
	Before, After []byte // SHA-256 of the changed records of the metadata; empty if none existed
	Previous      []byte // hash of the record before this one
	Hash          []byte // root of the hash tree over this record and all before it
}

// recordAction adds a record for an action that is not a metadata command.
type recordAction struct{ action Action }

func (*recordAction) command() {}

type actionKey struct{}

// audited is an action in a context.
type audited struct {
	action   Action
	recorded atomic.Bool
}

// WithAction makes changes with the context part of the audit log: the log entry of a change
// contains the action. recorded reports whether a change was proposed with it and not rejected;
// one that leaves everything as it was is not recorded.
func WithAction(ctx context.Context, action Action) (_ context.Context, recorded func() bool) {
	a := &audited{action: action}
	return context.WithValue(ctx, actionKey{}, a), a.recorded.Load
}

// ActionObject replaces the object of the action in the context, if there is one. Requests whose
// path does not name what they change call it before the change.
func ActionObject(ctx context.Context, object string) {
	if a, _ := ctx.Value(actionKey{}).(*audited); a != nil {
		a.action.Object = object
	}
}

// ActionObjects adds the invocations of a batch to the action in the context, if there is one.
func ActionObjects(ctx context.Context, objects []string) {
	if a, _ := ctx.Value(actionKey{}).(*audited); a != nil {
		a.action.Objects = objects
	}
}

// actionOf returns the action that an entry is to contain, nil for none: there is none, the
// command is one or changes nothing, or other nodes do not know actions yet.
func (s *Store) actionOf(ctx context.Context, cmd command) *Action {
	switch cmd.(type) {
	case *recordAction, *barrier:
		return nil
	}
	a, _ := ctx.Value(actionKey{}).(*audited)
	if a == nil || s.FeatureLevel() < feature.Level4 {
		return nil
	}
	a.recorded.Store(true)
	return &a.action
}

// notRecorded marks the action of a context whose change was rejected.
func notRecorded(ctx context.Context) {
	if a, _ := ctx.Value(actionKey{}).(*audited); a != nil {
		a.recorded.Store(false)
	}
}

// RecordAction adds a record to the audit log for an action that has not changed the metadata.
// Below feature level 4 there is no audit log.
func (s *Store) RecordAction(ctx context.Context, action Action) error {
	if s.FeatureLevel() < feature.Level4 {
		return nil
	}
	_, err := propose[any](ctx, s, &recordAction{action})
	return err
}

// digest returns the hash of a record's content.
func (r *AuditRecord) digest() ([]byte, error) {
	content := *r
	content.Hash = nil
	value, err := auditToProto(&content).MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode record %d of the audit log: %w", r.Sequence, err)
	}
	return hashtree.LeafHash(value), nil
}

// Audit returns up to limit records of the audit log: those before a number, the newest first;
// 0 for the newest of all.
func (s *Store) Audit(before uint64, limit int) (records []AuditRecord, err error) {
	if s.replica == nil {
		return nil, errors.New("read the audit log: there is no state file")
	}
	err = s.replica.fsm.db.bolt.View(func(tx *bbolt.Tx) error {
		cursor := tx.Bucket([]byte(tableAudit)).Cursor()
		key, stored := cursor.Last()
		if before > 0 {
			if key, stored = cursor.Seek([]byte(auditKey(before))); key == nil {
				key, stored = cursor.Last()
			}
			for key != nil && string(key) >= auditKey(before) {
				key, stored = cursor.Prev()
			}
		}
		for ; key != nil && len(records) < limit; key, stored = cursor.Prev() {
			r, err := readAudit(stored)
			if err != nil {
				return err
			}
			records = append(records, r)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return records, nil
}

func readAudit(stored []byte) (AuditRecord, error) {
	value, err := unsealed(stored)
	if err != nil {
		return AuditRecord{}, err
	}
	var m pb.AuditRecord
	if err := m.UnmarshalVT(value); err != nil {
		return AuditRecord{}, err
	}
	return auditFromProto(&m), nil
}

// auditKey returns a key that sorts numerically.
func auditKey(sequence uint64) string { return fmt.Sprintf("%016x", sequence) }

func auditToProto(r *AuditRecord) *pb.AuditRecord {
	return &pb.AuditRecord{
		Sequence: r.Sequence, TimeMs: millis(r.At), Action: actionToProto(&r.Action),
		Before: r.Before, After: r.After, Previous: r.Previous, Hash: r.Hash,
	}
}

func auditFromProto(m *pb.AuditRecord) AuditRecord {
	return AuditRecord{
		Sequence: m.GetSequence(), At: fromMillis(m.GetTimeMs()), Action: actionFromProto(m.GetAction()),
		Before: m.GetBefore(), After: m.GetAfter(), Previous: m.GetPrevious(), Hash: m.GetHash(),
	}
}

// actionToProto converts an action and bounds its texts.
func actionToProto(a *Action) *pb.Action {
	objects := make([]string, min(len(a.Objects), MaxAuditObjects))
	for i := range objects {
		objects[i] = bounded(a.Objects[i], maxAuditObjectID)
	}
	return &pb.Action{
		Principal: bounded(a.Principal, maxAuditText), Token: bounded(a.Token, maxAuditText), Address: bounded(a.Address, maxAuditText),
		Node: bounded(a.Node, maxAuditText), Action: bounded(a.Action, maxAuditText), Object: bounded(a.Object, maxAuditObject), Status: a.Status,
		Outcome: bounded(a.Outcome, maxAuditText), Reason: bounded(a.Reason, maxAuditText), Objects: objects, Omitted: a.Omitted,
	}
}

func actionFromProto(a *pb.Action) Action {
	return Action{
		Principal: a.GetPrincipal(), Token: a.GetToken(), Address: a.GetAddress(), Node: a.GetNode(),
		Action: a.GetAction(), Object: a.GetObject(), Status: a.GetStatus(), Outcome: a.GetOutcome(), Reason: a.GetReason(),
		Objects: a.GetObjects(), Omitted: a.GetOmitted(),
	}
}

// bounded shortens a text to limit bytes. The digest of the whole text distinguishes texts with the
// same beginning.
func bounded(text string, limit int) string {
	whole := text
	if text = strings.ToValidUTF8(text, "�"); len(text) <= limit {
		return text
	}
	suffix := fmt.Sprintf("… (%d bytes, SHA-256 %x)", len(whole), sha256.Sum256([]byte(whole)))
	return strings.ToValidUTF8(text[:max(limit-len(suffix), 0)], "") + suffix
}
