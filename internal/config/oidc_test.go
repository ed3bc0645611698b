package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLoginNeedsACompleteConfiguration(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("from-file\n"), 0o600))
	complete := `[security.oidc]
issuer = "https://idp.example.com"
client-id = "platform"
client-secret = "file:` + secret + `"
external-url = "https://platform.example.com"
roles-claim = "groups"
roles = { ops = "operator" }
`
	loaded, err := loadFile(t, complete)
	require.NoError(t, err)
	require.Equal(t, "from-file", loaded.Config.Security.OIDC.ClientSecret)
	require.NotContains(t, loaded.Dump(), "from-file")
	require.Contains(t, loaded.Dump(), `client-secret = "***"`)

	for key, text := range map[string]string{
		"security.oidc.issuer":           `client-id = "platform"`,
		"security.oidc.client-id":        `issuer = "https://idp.example.com"`,
		"security.oidc.external-url":     "issuer = \"https://idp.example.com\"\nclient-id = \"platform\"",
		"security.oidc.roles-claim":      "issuer = \"https://idp.example.com\"\ncli-client-id = \"cli\"",
		"security.oidc.roles":            "issuer = \"https://idp.example.com\"\ncli-client-id = \"cli\"\nroles-claim = \"groups\"",
		"security.oidc.session-lifetime": "issuer = \"https://idp.example.com\"\ncli-client-id = \"cli\"\nsession-lifetime = \"1s\"",
		"security.oidc.client-secret":    "issuer = \"https://idp.example.com\"\ncli-client-id = \"cli\"\nclient-secret = \"***\"",
	} {
		_, err := loadFile(t, "[security.oidc]\n"+text+"\n")
		require.ErrorContains(t, err, key)
	}
}
