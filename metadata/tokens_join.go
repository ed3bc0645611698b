package metadata

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "platform/proto/metadata"
)

// Bounds of join tokens.
const (
	// MaxJoinTokens is the number of join tokens that have not expired.
	MaxJoinTokens = 200
	// MaxJoinTokenValidity is the longest validity of a join token.
	MaxJoinTokenValidity = 7 * 24 * time.Hour
	// MaxNodeName is the size of the name of a node in a certificate.
	MaxNodeName = 128
)

// Reasons for rejecting a change of join tokens.
var (
	ErrJoinTokenRefused  = errors.New("join token refused")
	ErrJoinTokenNotFound = errors.New("there is no such join token")
	ErrTooManyJoinTokens = errors.New("too many join tokens exist")
)

// JoinToken permits one new node to get a certificate. A value is immutable.
type JoinToken struct {
	ID        string
	Hash      []byte // SHA-256 of the token
	Node      string // name of the only node that may use it; empty: any new one
	CreatedBy string
	CreatedAt time.Time
	ExpiresAt time.Time
	UsedAt    time.Time // zero: not used
	UsedBy    string    // name of the node
	UsedKey   []byte    // SHA-256 of its public key
}

// JoinTokenUse is a request of a node for a certificate.
type JoinTokenUse struct {
	ID   string
	Hash []byte // SHA-256 of the token
	Node string
	Key  []byte // SHA-256 of the public key
}

type createJoinToken struct{ token JoinToken }

// useJoinToken uses up a token.
type useJoinToken struct {
	id   string
	hash []byte
	node string
	key  []byte
}

type revokeJoinToken struct{ id string }

func (*createJoinToken) command() {}
func (*useJoinToken) command()    {}
func (*revokeJoinToken) command() {}

// JoinTokens returns the join tokens by ID, including expired ones. The slice is shared.
func (s *Store) JoinTokens() []JoinToken { return s.source.current().joinTokens }

// CreateJoinToken adds a join token, whose times it sets, and returns when all nodes that keep up
// know it. The error can be ErrTooManyJoinTokens or an *InvalidError.
func (s *Store) CreateJoinToken(ctx context.Context, token JoinToken, validity time.Duration) (JoinToken, error) {
	token.CreatedAt = fromMillis(s.now().UnixMilli())
	token.ExpiresAt = token.CreatedAt.Add(validity.Truncate(time.Millisecond))
	return proposeToAll[JoinToken](ctx, s, &createJoinToken{token})
}

// RevokeJoinToken deletes a join token and returns when all nodes that keep up know it. The error
// can be ErrJoinTokenNotFound.
func (s *Store) RevokeJoinToken(ctx context.Context, id string) (JoinToken, error) {
	return proposeToAll[JoinToken](ctx, s, &revokeJoinToken{id})
}

// CheckJoinToken returns why a join token cannot be used now, as far as this node knows. The error
// is ErrJoinTokenRejected.
func (s *Store) CheckJoinToken(use *JoinTokenUse) error {
	_, err := s.source.current().usable(s.now(), use)
	return err
}

// UseJoinToken uses up a join token. The same node can repeat it with the same public key until
// the token expires. The error can be ErrJoinTokenRejected.
func (s *Store) UseJoinToken(ctx context.Context, use *JoinTokenUse) (JoinToken, error) {
	return propose[JoinToken](ctx, s, &useJoinToken{use.ID, use.Hash, use.Node, use.Key})
}

func (s *state) joinToken(id string) (JoinToken, bool) {
	at, known := slices.BinarySearchFunc(s.joinTokens, id, compareJoinToken)
	if !known {
		return JoinToken{}, false
	}
	return s.joinTokens[at], true
}

func compareJoinToken(t JoinToken, id string) int { return cmp.Compare(t.ID, id) }

// check returns why a join token cannot be stored, nil if it can.
func (t *JoinToken) check() error {
	switch {
	case t.ID == "" || len(t.ID) > 64 || len(t.Hash) != sha256.Size:
		return &InvalidError{"a join token needs an id and a hash"}
	case len(t.Node) > MaxNodeName:
		return &InvalidError{fmt.Sprintf("the name of a node has at most %d bytes", MaxNodeName)}
	case !t.ExpiresAt.After(t.CreatedAt) || t.ExpiresAt.Sub(t.CreatedAt) > MaxJoinTokenValidity:
		return &InvalidError{"a join token is valid for at most seven days"}
	case !t.UsedAt.IsZero() || t.UsedBy != "" || len(t.UsedKey) > 0:
		return &InvalidError{"a new join token is not used"}
	}
	return nil
}

// applyCreateJoinToken returns the JoinToken.
func applyCreateJoinToken(d *draft, at time.Time, cmd *createJoinToken) (outcome, error) {
	t := cmd.token
	if err := t.check(); err != nil {
		return outcome{rejection: err}, nil //nolint:nilerr // a rejection is a result that all replicas agree on
	}
	for _, known := range d.joinTokens {
		if !at.Before(known.ExpiresAt) {
			d.deleteJoinToken(known.ID)
		}
	}
	if len(d.joinTokens) >= MaxJoinTokens {
		return rejected(ErrTooManyJoinTokens, "there are %d join tokens; revoke one first", len(d.joinTokens)), nil
	}
	if _, known := d.joinToken(t.ID); known {
		return outcome{rejection: &InvalidError{"there is a join token with this id"}}, nil
	}
	return outcome{value: t}, d.putJoinToken(t)
}

// usable returns the token that a node may use at a time. The error is a rejection.
func (s *state) usable(at time.Time, use *JoinTokenUse) (JoinToken, error) {
	reject := func(format string, args ...any) (JoinToken, error) {
		return JoinToken{}, &rejection{ErrJoinTokenRefused, fmt.Sprintf(format, args...)}
	}
	t, known := s.joinToken(use.ID)
	if !known {
		return reject("there is no join token %q", use.ID)
	}
	switch node, present := s.node(use.Node); {
	case subtle.ConstantTimeCompare(t.Hash, use.Hash) != 1:
		return reject("the secret of join token %s is wrong", t.ID)
	case !at.Before(t.ExpiresAt):
		return reject("join token %s has expired", t.ID)
	case use.Node == "" || len(use.Node) > MaxNodeName || len(use.Key) != sha256.Size:
		return reject("join token %s is used without a node and a key", t.ID)
	case !t.UsedAt.IsZero() && (t.UsedBy != use.Node || !bytes.Equal(t.UsedKey, use.Key)):
		return reject("join token %s was used by node %q", t.ID, t.UsedBy)
	case t.Node != "" && t.Node != use.Node:
		return reject("join token %s is for node %q, not for %q", t.ID, t.Node, use.Node)
	case t.Node == "" && present && !node.Removed && t.UsedAt.IsZero():
		return reject("join token %s is for a new node, and %q is a member; create one with --node %s", t.ID, use.Node, use.Node)
	}
	return t, nil
}

// applyUseJoinToken returns the JoinToken.
func applyUseJoinToken(d *draft, at time.Time, cmd *useJoinToken) (outcome, error) {
	t, err := d.usable(at, &JoinTokenUse{cmd.id, cmd.hash, cmd.node, cmd.key})
	if err != nil {
		return outcome{rejection: err}, nil //nolint:nilerr // a rejection is a result that all replicas agree on
	}
	if !t.UsedAt.IsZero() {
		return outcome{value: t}, nil
	}
	t.UsedAt, t.UsedBy, t.UsedKey = at, cmd.node, cmd.key
	return outcome{value: t}, d.putJoinToken(t)
}

// applyRevokeJoinToken returns the JoinToken.
func applyRevokeJoinToken(d *draft, cmd *revokeJoinToken) (outcome, error) {
	t, known := d.joinToken(cmd.id)
	if !known {
		return rejected(ErrJoinTokenNotFound, "there is no join token %s", cmd.id), nil
	}
	d.deleteJoinToken(t.ID)
	return outcome{value: t}, nil
}

// putJoinToken adds or replaces a join token.
func (d *draft) putJoinToken(t JoinToken) error {
	at, known := slices.BinarySearchFunc(d.joinTokens, t.ID, compareJoinToken)
	d.joinTokens = placed(d.joinTokens, at, known, t)
	return d.put(tableJoinTokens, t.ID, joinTokenToProto(&t))
}

func (d *draft) deleteJoinToken(id string) {
	d.joinTokens = slices.DeleteFunc(slices.Clone(d.joinTokens), func(known JoinToken) bool { return known.ID == id })
	d.deleteRecord(tableJoinTokens, id)
}

func joinTokenToProto(t *JoinToken) *pb.JoinToken {
	return &pb.JoinToken{
		Id: t.ID, Hash: t.Hash, Node: t.Node, CreatedBy: t.CreatedBy, CreatedAtMs: millis(t.CreatedAt), ExpiresAtMs: millis(t.ExpiresAt),
		UsedAtMs: millis(t.UsedAt), UsedBy: t.UsedBy, UsedKey: t.UsedKey,
	}
}

func joinTokenFromProto(t *pb.JoinToken) JoinToken {
	return JoinToken{
		ID: t.GetId(), Hash: t.GetHash(), Node: t.GetNode(), CreatedBy: t.GetCreatedBy(), CreatedAt: fromMillis(t.GetCreatedAtMs()), ExpiresAt: fromMillis(t.GetExpiresAtMs()),
		UsedAt: fromMillis(t.GetUsedAtMs()), UsedBy: t.GetUsedBy(), UsedKey: t.GetUsedKey(),
	}
}
