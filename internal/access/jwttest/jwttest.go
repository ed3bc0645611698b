// Package jwttest makes the JSON web tokens of identity providers for tests.
package jwttest

import (
	"encoding/json"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

// Change sets claims, or deletes those whose new value is nil, and returns them.
func Change(claims, changes map[string]any) map[string]any {
	for name, value := range changes {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return claims
}

// Sign returns a token with the claims, signed with a key that has the ID kid.
func Sign(t *testing.T, alg jose.SignatureAlgorithm, key any, kid string, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, nil)
	require.NoError(t, err)
	payload, err := json.Marshal(claims)
	require.NoError(t, err)
	signed, err := signer.Sign(payload)
	require.NoError(t, err)
	text, err := signed.CompactSerialize()
	require.NoError(t, err)
	return text
}
