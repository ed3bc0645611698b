package metadata

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fullToken has all fields set.
func fullToken() Token {
	return Token{
		ID: "abcdefghijklmnop", Name: "ci", Hash: bytes.Repeat([]byte{7}, 32), Roles: []string{"operator", "reader"}, Services: []string{"Greeter"},
		Scopes: []string{"a"}, CreatedBy: "admin", CreatedAt: goldenTime, ExpiresAt: goldenTime, LastUsed: goldenTime,
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
