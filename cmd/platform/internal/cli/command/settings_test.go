package command

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheIngressIsOnTheHostOfTheAdminAPI checks that calls and tokens for another machine do not go
// to this one if only the admin API is named.
func TestTheIngressIsOnTheHostOfTheAdminAPI(t *testing.T) {
	for name, c := range map[string]struct {
		env, flags map[string]string
		want       string
	}{
		"default":        {want: "http://127.0.0.1:8080/"},
		"flag":           {flags: map[string]string{"admin": "n1.internal:9070"}, want: "http://n1.internal:8080/"},
		"TLS":            {env: map[string]string{"PLATFORM_ADMIN_URL": "https://n1.internal"}, want: "https://n1.internal:8080/"},
		"IPv6":           {flags: map[string]string{"admin": "http://[fd00::1]:9070"}, want: "http://[fd00::1]:8080/"},
		"port":           {flags: map[string]string{"admin": "19070"}, want: "http://localhost:8080/"},
		"socket":         {flags: map[string]string{"admin": "unix:/run/platform.sock"}, want: "http://127.0.0.1:8080/"},
		"both":           {flags: map[string]string{"admin": "n1:9070", "ingress": "n2:80"}, want: "http://n2:80"},
		"host":           {env: map[string]string{"PLATFORM_HOST": "n1"}, want: "http://n1:8080/"},
		"host and admin": {env: map[string]string{"PLATFORM_HOST": "n1", "PLATFORM_ADMIN_URL": "https://n2:1"}, want: "http://n1:8080/"},
		"variable":       {flags: map[string]string{"admin": "n1:9070"}, env: map[string]string{"PLATFORM_INGRESS_URL": "n3:8080"}, want: "http://n3:8080"},
	} {
		system := System{Home: t.TempDir(), Getenv: func(name string) string { return c.env[name] }}
		s, err := loadSettings(system, &globals{adminURL: c.flags["admin"], ingressURL: c.flags["ingress"]})
		require.NoError(t, err, name)
		require.Equal(t, c.want, s.IngressURL, name)
	}
}
