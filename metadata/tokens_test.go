package metadata

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup"
)

// fullToken has all fields set.
func fullToken() Token {
	return Token{
		ID: "abcdefghijklmnop", Name: "ci", Hash: bytes.Repeat([]byte{7}, 32), Roles: []string{"operator", "reader"}, Services: []string{"Greeter"},
		Scopes: []string{"a"}, CreatedBy: "admin", CreatedAt: goldenTime, ExpiresAt: goldenTime, LastUsed: goldenTime,
	}
}

// fullSession is a session with all fields that sessions have.
func fullSession() Token {
	return Token{
		ID: "bcdefghijklmnopq", Name: "oidc:ada", Hash: bytes.Repeat([]byte{8}, 32), Roles: []string{"viewer"}, CreatedAt: goldenTime,
		ExpiresAt: goldenTime.Add(time.Hour), LastUsed: goldenTime, Session: true,
	}
}

func fullAction() Action {
	return Action{
		Principal: "ci", Token: "abcdefghijklmnop", Address: "::1", Node: "n1", Action: "DELETE /deployments/:deployment", Object: "/deployments/dp_1",
		Status: 202, Outcome: "no", Reason: "why",
	}
}

func TestTokensAreCreatedUsedAndRevoked(t *testing.T) {
	m := atLevel4(t)
	token := fullToken()
	token.LastUsed = time.Time{}
	created, err := m.CreateToken(t.Context(), token)
	require.NoError(t, err)
	require.False(t, created.CreatedAt.Equal(goldenTime), "the store sets the time")
	stored, known := m.Token(token.ID)
	require.True(t, known)
	require.Equal(t, created, stored)

	_, err = m.CreateToken(t.Context(), token)
	require.ErrorIs(t, err, ErrTokenExists)
	same := token
	same.ID = "other"
	_, err = m.CreateToken(t.Context(), same)
	require.ErrorIs(t, err, ErrTokenExists, "names are unique")

	later := goldenTime.Add(time.Hour)
	require.NoError(t, m.UseTokens(t.Context(), []TokenUse{{"unknown", later}, {token.ID, later}, {token.ID, goldenTime}}))
	stored, _ = m.Token(token.ID)
	require.Equal(t, later, stored.LastUsed, "it never goes back")

	revoked, err := m.RevokeToken(t.Context(), token.ID)
	require.NoError(t, err)
	require.Equal(t, token.Name, revoked.Name)
	_, known = m.Token(token.ID)
	require.False(t, known)
	_, err = m.RevokeToken(t.Context(), token.ID)
	require.ErrorIs(t, err, ErrTokenNotFound)
}

// A client may use a new token at any node, and a revoked one at none, even if the response to the
// revocation was lost and it is repeated.
func TestChangesOfTokensWaitForAllNodes(t *testing.T) {
	m := atLevel4(t)
	waited := 0
	m.awaitNodes = func(context.Context, uint64) { waited++ }
	m.replica = &replica{fsm: &fsm{}}
	m.replica.fsm.applied.Store(&raftgroup.Position{})
	for i, token := range []Token{fullToken(), fullSession()} {
		token.ExpiresAt = m.now().Add(time.Hour)
		_, err := m.CreateToken(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, 3*i+1, waited, "creation")
		_, err = m.RevokeToken(t.Context(), token.ID)
		require.NoError(t, err)
		require.Equal(t, 3*i+2, waited, "revocation")
		_, err = m.RevokeToken(t.Context(), token.ID)
		require.ErrorIs(t, err, ErrTokenNotFound)
		require.Equal(t, 3*i+3, waited, "repeated revocation")
	}
}

func TestTokensAreBounded(t *testing.T) {
	m := atLevel4(t)
	for name, change := range map[string]func(*Token){
		"needs an id and a hash": func(t *Token) { t.Hash = nil },
		"1 to 100 bytes":         func(t *Token) { t.Name = strings.Repeat("x", MaxTokenName+1) },
		"needs a role":           func(t *Token) { t.Roles = nil },
		"at most 100 services":   func(t *Token) { t.Services = make([]string, MaxTokenLimits+1) },
		"at most 512 bytes":      func(t *Token) { t.Scopes = []string{strings.Repeat("x", MaxTokenLimit+1)} },
	} {
		token := fullToken()
		change(&token)
		_, err := m.CreateToken(t.Context(), token)
		require.ErrorContains(t, err, name)
	}
	for i := range MaxTokens {
		token := fullToken()
		token.ID, token.Name = fmt.Sprintf("%016d", i), fmt.Sprint(i)
		_, err := m.CreateToken(t.Context(), token)
		require.NoError(t, err)
	}
	_, err := m.CreateToken(t.Context(), fullToken())
	require.ErrorIs(t, err, ErrTooManyTokens)
}

func TestTokensNeedTheirFeatureLevel(t *testing.T) {
	m := provisioned(t)
	_, err := m.CreateToken(t.Context(), fullToken())
	require.ErrorContains(t, err, "a token needs feature level 4")
	require.NoError(t, m.RecordAction(t.Context(), fullAction()), "there is no audit log yet")
	require.Zero(t, m.view.audit.count)
}

// newSession creates a session of a user.
func newSession(t *testing.T, m *memStore, id, name string, expires time.Time) error {
	t.Helper()
	s := fullSession()
	s.ID, s.Name, s.ExpiresAt = id, name, expires
	_, err := m.CreateToken(t.Context(), s)
	return err
}

func TestUsersHaveABoundedNumberOfSessions(t *testing.T) {
	m := atLevel4(t)
	later := m.now().Add(time.Hour)
	for i := range MaxUserSessions + 1 {
		require.NoError(t, newSession(t, m, fmt.Sprintf("ada-%02d", i), "oidc:ada", later))
	}
	require.Len(t, m.Tokens(), MaxUserSessions)
	_, known := m.Token("ada-00")
	require.False(t, known, "the oldest session is replaced")

	require.NoError(t, newSession(t, m, "brief", "oidc:bob", m.now().Add(-time.Second)))
	require.NoError(t, newSession(t, m, "bob", "oidc:bob", later))
	_, known = m.Token("brief")
	require.False(t, known, "expired sessions are deleted")

	require.ErrorContains(t, newSession(t, m, "endless", "oidc:bob", time.Time{}), "expires")
	require.ErrorIs(t, newSession(t, m, "bob", "oidc:eve", later), ErrTokenExists)
}

func TestSessionsAndTokensHaveSeparateBounds(t *testing.T) {
	m := atLevel4(t)
	later := m.now().Add(time.Hour)
	for i := range MaxSessions {
		require.NoError(t, newSession(t, m, fmt.Sprintf("%016d", i), fmt.Sprint("oidc:", i), later))
	}
	require.ErrorIs(t, newSession(t, m, "one-more", "oidc:one-more", later), ErrTooManyTokens)
	require.NoError(t, newSession(t, m, "again", "oidc:0", later.Add(-30*time.Minute)), "a user with a session replaces it")
	_, err := m.CreateToken(t.Context(), fullToken())
	require.NoError(t, err)
}
