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
	// MaxSessionName is the size of the name of a session.
	MaxSessionName = 256
	// MaxTokenLimits is the number of services and of scopes that a token is limited to, and
	// MaxTokenLimit the size of the name of one.
	MaxTokenLimits = 100
	MaxTokenLimit  = 512
	// MaxSessions is the number of sessions, and MaxUserSessions that of one user, whose oldest
	// session a new one replaces.
	MaxSessions     = 1000
	MaxUserSessions = 10
)

// Reasons for rejecting a change of tokens.
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
	// Session marks the login of a user at an identity provider. Sessions of one user have the same
	// name, and the expired ones are deleted.
	Session bool
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

// ConfirmedTokens is Tokens as of a moment after the call began, even if this node's view is outdated.
func (s *Store) ConfirmedTokens(ctx context.Context) ([]Token, error) {
	if _, err := propose[any](ctx, s, &barrier{}); err != nil {
		return nil, err
	}
	return s.Tokens(), nil
}

// CreateToken adds a token, whose time of creation it sets, and returns when all nodes that keep up
// know it: the next request may be sent to another node. The error can be ErrTooManyTokens,
// ErrTokenExists or an *InvalidError.
func (s *Store) CreateToken(ctx context.Context, token Token) (Token, error) {
	token.CreatedAt = fromMillis(s.now().UnixMilli())
	return proposeToAll[Token](ctx, s, &createToken{token})
}

// RevokeToken deletes a token and returns when all nodes that keep up know it. The error can be
// ErrTokenNotFound, which holds on these nodes, too: an earlier request, whose response was lost, may
// have deleted the token.
func (s *Store) RevokeToken(ctx context.Context, id string) (Token, error) {
	token, err := proposeToAll[Token](ctx, s, &revokeToken{id})
	if errors.Is(err, ErrTokenNotFound) {
		s.awaitAll(ctx)
	}
	return token, err
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
	case t.Name == "" || len(t.Name) > t.maxName():
		return &InvalidError{fmt.Sprintf("the name of a token has 1 to %d bytes, not %d", t.maxName(), len(t.Name))}
	case len(t.Roles) == 0:
		return &InvalidError{"a token needs a role"}
	case t.Session && t.ExpiresAt.IsZero():
		return &InvalidError{"a session needs a time at which it expires"}
	case len(t.Services) > MaxTokenLimits || len(t.Scopes) > MaxTokenLimits:
		return &InvalidError{fmt.Sprintf("a token can be limited to at most %d services and %d scopes", MaxTokenLimits, MaxTokenLimits)}
	case slices.ContainsFunc(slices.Concat(t.Services, t.Scopes), func(name string) bool { return len(name) > MaxTokenLimit }):
		return &InvalidError{fmt.Sprintf("the name of a service or scope that a token is limited to has at most %d bytes", MaxTokenLimit)}
	}
	return nil
}

func (t *Token) maxName() int {
	if t.Session {
		return MaxSessionName
	}
	return MaxTokenName
}

// applyCreateToken returns the Token.
func applyCreateToken(d *draft, cmd *createToken) (outcome, error) {
	t := cmd.token
	if err := t.check(); err != nil {
		return outcome{rejection: err}, nil //nolint:nilerr // a rejection is a result that all replicas agree on
	}
	if _, known := d.token(t.ID); known {
		return rejected(ErrTokenExists, "there is a token with the id %s", t.ID), nil
	}
	if t.Session {
		return applyCreateSession(d, t)
	}
	stored := 0
	for _, known := range d.tokens {
		if known.Session {
			continue
		}
		if stored++; known.Name == t.Name {
			return rejected(ErrTokenExists, "there is a token with the name %q; revoke it first, or choose another name", t.Name), nil
		}
	}
	if stored >= MaxTokens {
		return rejected(ErrTooManyTokens, "there are %d tokens; revoke one first", stored), nil
	}
	return outcome{value: t}, d.putToken(t)
}

// applyCreateSession makes room for a session first. It returns the Token.
func applyCreateSession(d *draft, t Token) (outcome, error) {
	var expired []string
	var own []Token
	sessions := 0
	for _, known := range d.tokens {
		switch {
		case !known.Session:
		case !t.CreatedAt.Before(known.ExpiresAt):
			expired = append(expired, known.ID)
		default:
			if sessions++; known.Name == t.Name {
				own = append(own, known)
			}
		}
	}
	for _, id := range expired {
		d.deleteToken(id)
	}
	if len(own) >= MaxUserSessions || sessions >= MaxSessions && len(own) > 0 {
		oldest := slices.MinFunc(own, func(a, b Token) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
		})
		d.deleteToken(oldest.ID)
		sessions--
	}
	if sessions >= MaxSessions {
		return rejected(ErrTooManyTokens, "there are %d sessions of users; revoke one first", sessions), nil
	}
	return outcome{value: t}, d.putToken(t)
}

func (d *draft) deleteToken(id string) {
	d.tokens = slices.DeleteFunc(slices.Clone(d.tokens), func(known Token) bool { return known.ID == id })
	d.deleteRecord(tableTokens, id)
}

// applyRevokeToken returns the Token.
func applyRevokeToken(d *draft, cmd *revokeToken) (outcome, error) {
	t, known := d.token(cmd.id)
	if !known {
		return outcome{rejection: &rejection{ErrTokenNotFound, "there is no token " + cmd.id}}, nil
	}
	d.deleteToken(t.ID)
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
	d.tokens = placed(d.tokens, at, known, t)
	return d.put(tableTokens, t.ID, tokenToProto(&t))
}

func tokenToProto(t *Token) *pb.Token {
	return &pb.Token{
		Id: t.ID, Name: t.Name, Hash: t.Hash, Roles: t.Roles, Services: t.Services, Scopes: t.Scopes, CreatedBy: t.CreatedBy,
		CreatedAtMs: millis(t.CreatedAt), ExpiresAtMs: millis(t.ExpiresAt), LastUsedMs: millis(t.LastUsed),
		Session: t.Session,
	}
}

func tokenFromProto(t *pb.Token) Token {
	return Token{
		ID: t.GetId(), Name: t.GetName(), Hash: t.GetHash(), Roles: t.GetRoles(), Services: t.GetServices(), Scopes: t.GetScopes(), CreatedBy: t.GetCreatedBy(),
		CreatedAt: fromMillis(t.GetCreatedAtMs()), ExpiresAt: fromMillis(t.GetExpiresAtMs()), LastUsed: fromMillis(t.GetLastUsedMs()),
		Session: t.GetSession(),
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
