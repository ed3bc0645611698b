package admin

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/access"
	"platform/metadata"
)

// laggingTokens is the registry of a node that does not know the newest tokens until it has confirmed them.
type laggingTokens struct{ Registry }

func (laggingTokens) Tokens() []metadata.Token { return nil }

func (laggingTokens) Token(string) (metadata.Token, bool) { return metadata.Token{}, false }

// A node that does not know a token yet revokes it by its name, and only for those who may.
func TestTokensThatANodeDoesNotKnowYetAreRevoked(t *testing.T) {
	w := secured(t, byRole())
	ids := map[string]string{}
	for _, role := range []access.Role{access.Admin, access.Viewer} {
		secret := access.NewSecret()
		ids[string(role)] = secret.ID
		_, err := w.store.CreateToken(t.Context(), metadata.Token{ID: secret.ID, Hash: secret.Hash[:], Name: "new-" + string(role), Roles: []string{string(role)}})
		require.NoError(t, err)
	}
	w.restart(laggingTokens{w.store})
	revoke := func(as, token string) (int, string) {
		r := httptest.NewRequest(http.MethodDelete, origin+"/tokens/"+token, nil)
		w.as(as)(r)
		recorder := httptest.NewRecorder()
		w.Handler().ServeHTTP(recorder, r)
		return recorder.Code, recorder.Body.String()
	}
	for _, token := range []string{"new-admin", ids["admin"]} {
		status, text := revoke("security", token)
		require.Equal(t, http.StatusForbidden, status, text)
	}
	status, text := revoke("security", "new-viewer")
	require.Equal(t, http.StatusOK, status, text)
	require.True(t, strings.Contains(text, ids["viewer"]), text)
	status, _ = revoke("security", "new-viewer")
	require.Equal(t, http.StatusNotFound, status)
	tokens, err := w.store.ConfirmedTokens(context.Background())
	require.NoError(t, err)
	require.Len(t, tokens, 1)
}
