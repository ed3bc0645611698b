package metadata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "platform/proto/metadata"
)

// Bounds of tokens.
const (
	// MaxTokens is the number of tokens, including expired ones.
	MaxTokens = 1000
	// MaxTokenName is the size of a name.
	MaxTokenName = 100
	// MaxTokenLimits is the number of services and of scopes that a token is limited to, and
	// MaxTokenLimit the size of the name of one.
	MaxTokenLimits = 100
	MaxTokenLimit  = 512
)

// Reasons for refusing a change of tokens.
var (
	ErrTooManyTokens = errors.New("too many tokens exist")
	ErrTokenNotFound = errors.New("there is no such token")
	ErrTokenExists   = errors.New("token exists")
)

// Token is the credentials of a client of the HTTP ports. A value is immutable.
type Token struct {
	ID               string
	Name             string
	Hash             []byte // SHA-256 of the token
	Roles            []string
	Services, Scopes []string // the token is limited to these; empty: to none
	CreatedBy        string
	CreatedAt        time.Time
	ExpiresAt        time.Time // zero: never
	LastUsed         time.Time // zero: never
}

// TokenUse is the last use of a token.
type TokenUse struct {
	ID string
	At time.Time
}

type createToken struct{ token Token }

type revokeToken struct{ id string }

// useTokens records the last use of tokens.
type useTokens struct{ uses []TokenUse }

func (*createToken) command() {}
func (*revokeToken) command() {}
func (*useTokens) command()   {}

// Tokens returns the tokens by ID. The slice is shared.
func (s *Store) Tokens() []Token { return s.source.current().tokens }

// Token returns a token; false if there is none with that ID.
func (s *Store) Token(id string) (Token, bool) { return s.source.current().token(id) }

// CreateToken adds a token, whose time of creation it sets. The error can be ErrTooManyTokens,
// ErrTokenExists or an *InvalidError.
func (s *Store) CreateToken(ctx context.Context, token Token) (Token, error) {
	token.CreatedAt = fromMillis(s.now().UnixMilli())
	return propose[Token](ctx, s, &createToken{token})
}

// RevokeToken deletes a token and returns when all nodes that keep up know it. The error can be
// ErrTokenNotFound.
func (s *Store) RevokeToken(ctx context.Context, id string) (Token, error) {
	return proposeToAll[Token](ctx, s, &revokeToken{id})
}

// UseTokens records when tokens were last used.
func (s *Store) UseTokens(ctx context.Context, uses []TokenUse) error {
	uses = slices.SortedFunc(slices.Values(uses), func(a, b TokenUse) int { return cmp.Compare(a.ID, b.ID) })
	_, err := propose[any](ctx, s, &useTokens{uses})
	return err
}

func (s *state) token(id string) (Token, bool) {
	at, known := slices.BinarySearchFunc(s.tokens, id, compareToken)
	if !known {
		return Token{}, false
	}
	return s.tokens[at], true
}

func compareToken(t Token, id string) int { return cmp.Compare(t.ID, id) }

// check returns why a token cannot be stored, nil if it can.
func (t *Token) check() error {
	switch {
	case t.ID == "" || len(t.Hash) != 32:
		return &InvalidError{"a token needs an id and a hash"}
	case t.Name == "" || len(t.Name) > MaxTokenName:
		return &InvalidError{fmt.Sprintf("the name of a token has 1 to %d bytes, not %d", MaxTokenName, len(t.Name))}
	case len(t.Roles) == 0:
		return &InvalidError{"a token needs a role"}
	case len(t.Services) > MaxTokenLimits || len(t.Scopes) > MaxTokenLimits:
		return &InvalidError{fmt.Sprintf("a token can be limited to at most %d services and %d scopes", MaxTokenLimits, MaxTokenLimits)}
	case slices.ContainsFunc(slices.Concat(t.Services, t.Scopes), func(name string) bool { return len(name) > MaxTokenLimit }):
		return &InvalidError{fmt.Sprintf("the name of a service or scope that a token is limited to has at most %d bytes", MaxTokenLimit)}
	}
	return nil
}

// applyCreateToken returns the Token.
func applyCreateToken(d *draft, cmd *createToken) (outcome, error) {
	t := cmd.token
	if err := t.check(); err != nil {
		return outcome{refusal: err}, nil //nolint:nilerr // a refusal is a result that all replicas agree on
	}
	if len(d.tokens) >= MaxTokens {
		return refused(ErrTooManyTokens, "there are %d tokens; revoke one first", len(d.tokens)), nil
	}
	if slices.ContainsFunc(d.tokens, func(known Token) bool { return known.ID == t.ID || known.Name == t.Name }) {
		return refused(ErrTokenExists, "there is a token with the name %q; revoke it first, or choose another name", t.Name), nil
	}
	return outcome{value: t}, d.putToken(t)
}

// applyRevokeToken returns the Token.
func applyRevokeToken(d *draft, cmd *revokeToken) (outcome, error) {
	t, known := d.token(cmd.id)
	if !known {
		return refused(ErrTokenNotFound, "there is no token %s", cmd.id), nil
	}
	d.tokens = slices.DeleteFunc(slices.Clone(d.tokens), func(known Token) bool { return known.ID == t.ID })
	d.deleteRecord(tableTokens, t.ID)
	return outcome{value: t}, nil
}

func applyUseTokens(d *draft, cmd *useTokens) (outcome, error) {
	for _, use := range cmd.uses {
		t, known := d.token(use.ID)
		if !known || !use.At.After(t.LastUsed) {
			continue
		}
		t.LastUsed = use.At
		if err := d.putToken(t); err != nil {
			return outcome{}, err
		}
	}
	return outcome{}, nil
}

// putToken adds or replaces a token.
func (d *draft) putToken(t Token) error {
	at, known := slices.BinarySearchFunc(d.tokens, t.ID, compareToken)
	d.tokens = slices.Clone(d.tokens)
	if known {
		d.tokens[at] = t
	} else {
		d.tokens = slices.Insert(d.tokens, at, t)
	}
	return d.put(tableTokens, t.ID, tokenToProto(&t))
}

func tokenToProto(t *Token) *pb.Token {
	return &pb.Token{
		Id: t.ID, Name: t.Name, Hash: t.Hash, Roles: t.Roles, Services: t.Services, Scopes: t.Scopes, CreatedBy: t.CreatedBy,
		CreatedAtMs: millis(t.CreatedAt), ExpiresAtMs: millis(t.ExpiresAt), LastUsedMs: millis(t.LastUsed),
	}
}

func tokenFromProto(t *pb.Token) Token {
	return Token{
		ID: t.GetId(), Name: t.GetName(), Hash: t.GetHash(), Roles: t.GetRoles(), Services: t.GetServices(), Scopes: t.GetScopes(), CreatedBy: t.GetCreatedBy(),
		CreatedAt: fromMillis(t.GetCreatedAtMs()), ExpiresAt: fromMillis(t.GetExpiresAtMs()), LastUsed: fromMillis(t.GetLastUsedMs()),
	}
}

func usesToProto(uses []TokenUse) (out []*pb.TokenUse) {
	for _, use := range uses {
		out = append(out, &pb.TokenUse{Id: use.ID, AtMs: millis(use.At)})
	}
	return out
}

func usesFromProto(uses []*pb.TokenUse) (out []TokenUse) {
	for _, use := range uses {
		out = append(out, TokenUse{use.GetId(), fromMillis(use.GetAtMs())})
	}
	return out
}
