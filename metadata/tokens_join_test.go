package metadata

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
)

// fullJoinToken has all fields set.
func fullJoinToken() JoinToken {
	return JoinToken{
		ID: "abcdefghijklmnop", Hash: bytes.Repeat([]byte{7}, 32), Node: "n4", CreatedBy: "admin", CreatedAt: goldenTime,
		ExpiresAt: goldenTime.Add(time.Hour), UsedAt: goldenTime.Add(time.Minute), UsedBy: "n4", UsedKey: bytes.Repeat([]byte{8}, 32),
	}
}

// newJoinToken creates a token, valid for an hour, and returns its use by node n4.
func newJoinToken(t *testing.T, m *memStore, id, node string) JoinTokenUse {
	hash := bytes.Repeat([]byte{7}, 32)
	_, err := m.CreateJoinToken(t.Context(), JoinToken{ID: id, Hash: hash, Node: node}, time.Hour)
	require.NoError(t, err)
	return JoinTokenUse{ID: id, Hash: hash, Node: "n4", Key: bytes.Repeat([]byte{8}, 32)}
}

func TestJoinTokenIsUsedOnce(t *testing.T) {
	m := atLevel4(t)
	use := newJoinToken(t, m, "a", "")
	require.NoError(t, m.CheckJoinToken(&use))
	used, err := m.UseJoinToken(t.Context(), &use)
	require.NoError(t, err)
	require.Equal(t, "n4", used.UsedBy)
	require.False(t, used.UsedAt.IsZero())

	again, err := m.UseJoinToken(t.Context(), &use)
	require.NoError(t, err, "the node that crashed before it stored its certificate asks again")
	require.Equal(t, used, again)
	for name, change := range map[string]func(*JoinTokenUse){
		"another key":  func(u *JoinTokenUse) { u.Key = bytes.Repeat([]byte{9}, 32) },
		"another node": func(u *JoinTokenUse) { u.Node = "n5" },
	} {
		other := use
		change(&other)
		require.ErrorIs(t, m.CheckJoinToken(&other), ErrJoinTokenRefused, name)
		_, err = m.UseJoinToken(t.Context(), &other)
		require.ErrorIs(t, err, ErrJoinTokenRefused, name)
	}
	m.clock = m.clock.Add(2 * time.Hour)
	_, err = m.UseJoinToken(t.Context(), &use)
	require.ErrorContains(t, err, "expired")
}

func TestJoinTokensAreRejected(t *testing.T) {
	m := atLevel4(t)
	_, err := m.RegisterNode(t.Context(), Node{Name: "n1", Incarnation: "x", FeatureLevel: feature.Level4})
	require.NoError(t, err)
	bound := newJoinToken(t, m, "bound", "n1")
	free := newJoinToken(t, m, "free", "")
	for name, c := range map[string]struct {
		use    JoinTokenUse
		change func(*JoinTokenUse)
	}{
		"unknown":                 {free, func(u *JoinTokenUse) { u.ID = "other" }},
		"wrong secret":            {free, func(u *JoinTokenUse) { u.Hash = bytes.Repeat([]byte{1}, 32) }},
		"no secret":               {free, func(u *JoinTokenUse) { u.Hash = nil }},
		"no node":                 {free, func(u *JoinTokenUse) { u.Node = "" }},
		"no key":                  {free, func(u *JoinTokenUse) { u.Key = nil }},
		"the name of a member":    {free, func(u *JoinTokenUse) { u.Node = "n1" }},
		"for another node":        {bound, func(u *JoinTokenUse) { u.Node = "n4" }},
		"the id of another token": {bound, func(u *JoinTokenUse) { u.ID = "" }},
	} {
		use := c.use
		c.change(&use)
		require.ErrorIs(t, m.CheckJoinToken(&use), ErrJoinTokenRefused, name)
		_, err := m.UseJoinToken(t.Context(), &use)
		require.ErrorIs(t, err, ErrJoinTokenRefused, name)
	}
	for _, token := range m.JoinTokens() {
		require.True(t, token.UsedAt.IsZero(), "an attempt does not use up %s", token.ID)
	}
	bound.Node = "n1"
	_, err = m.UseJoinToken(t.Context(), &bound)
	require.NoError(t, err, "a token for a member that has lost its certificate")
	_, err = m.RevokeJoinToken(t.Context(), "free")
	require.NoError(t, err)
	_, err = m.UseJoinToken(t.Context(), &free)
	require.ErrorIs(t, err, ErrJoinTokenRefused)
	_, err = m.RevokeJoinToken(t.Context(), "free")
	require.ErrorIs(t, err, ErrJoinTokenNotFound)
}

func TestJoinTokensAreBounded(t *testing.T) {
	m := atLevel4(t)
	validity := time.Hour
	for name, change := range map[string]func(*JoinToken){
		"no hash":        func(j *JoinToken) { j.Hash = nil },
		"no validity":    func(*JoinToken) { validity = 0 },
		"expires late":   func(*JoinToken) { validity = 8 * 24 * time.Hour },
		"long node name": func(j *JoinToken) { j.Node = string(bytes.Repeat([]byte{'n'}, MaxNodeName+1)) },
		"used":           func(j *JoinToken) { j.UsedBy = "n1" },
	} {
		validity = time.Hour
		token := JoinToken{ID: "x", Hash: bytes.Repeat([]byte{7}, 32)}
		change(&token)
		_, err := m.CreateJoinToken(t.Context(), token, validity)
		var invalid *InvalidError
		require.ErrorAs(t, err, &invalid, name)
	}
	for i := range MaxJoinTokens {
		newJoinToken(t, m, fmt.Sprint("t", i), "")
	}
	token := JoinToken{ID: "x", Hash: bytes.Repeat([]byte{7}, 32)}
	_, err := m.CreateJoinToken(t.Context(), token, time.Hour)
	require.ErrorIs(t, err, ErrTooManyJoinTokens)
	m.clock = m.clock.Add(2 * time.Hour)
	newJoinToken(t, m, "after", "")
	require.True(t, slices.EqualFunc(m.JoinTokens(), []string{"after"}, func(j JoinToken, id string) bool { return j.ID == id }), "expired ones are deleted")
}
