package access

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func request(host string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://x/", nil)
	r.Host = host
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func TestNamesThatStrangersCanOwnAreRejected(t *testing.T) {
	g := &Guard{Setting: "admin", Hosts: []string{"platform.example.com", "n1.example:9070"}}
	for _, host := range []string{
		"", "localhost", "LOCALHOST:9070", "app.localhost", "127.0.0.1", "127.0.0.1:9070", "[::1]:9070", "[::1]", "::1", "10.0.0.7:1", "n1:9070",
		"host.docker.internal:9070", "platform.default.svc", "platform.default.svc.cluster.local:9070", "platform.example.com", "Platform.Example.COM:443", "n1.example",
	} {
		require.NoError(t, g.CheckHost(request(host)), host)
	}
	for _, host := range []string{
		"evil.example", "evil.example:9070", "127.0.0.1.evil.example", "localhost.evil.example", "localhost.", "evil.local", "cluster.local", "xplatform.example.com",
		"platform.example.com.evil.example", "127.0.0.1.nip.io:9070", "svc.evil.example", "2130706433.evil.example",
	} {
		err := g.CheckHost(request(host))
		require.ErrorContains(t, err, "admin.allowed-hosts", host)
	}
	require.NoError(t, (&Guard{Hosts: []string{AnyOne}}).CheckHost(request("evil.example")))
}

func TestPagesOfOtherOriginsAreRejected(t *testing.T) {
	g := &Guard{Setting: "admin", Origins: []string{"https://trusted.example"}, Port: 9071}
	for _, headers := range [][]string{
		{},
		{"Sec-Fetch-Site", "none"},
		{"Sec-Fetch-Site", "same-origin"},
		{"Origin", "http://localhost:9070"},
		{"Origin", "http://localhost:9071"},
		{"Origin", "https://trusted.example", "Sec-Fetch-Site", "cross-site"},
	} {
		require.NoError(t, g.CheckOrigin(request("localhost:9070", headers...)), headers)
	}
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example"},
		{"Origin", "https://evil.example", "Sec-Fetch-Site", "same-origin"},
		{"Origin", "null"},
		{"Origin", "http://localhost:3000"},
		{"Origin", "http://evil.example:9071"},
		{"Origin", "https://trusted.example.evil.example"},
		{"Origin", "file://"},
		{"Origin", "*"},
	} {
		require.ErrorContains(t, g.CheckOrigin(request("localhost:9070", headers...)), "admin.allowed-origins", headers)
	}

	local := &Guard{LocalOrigins: true}
	require.NoError(t, local.CheckOrigin(request("localhost:8080", "Sec-Fetch-Site", "same-site")), "another port of this machine")
	for _, origin := range []string{"http://localhost:3000", "http://127.0.0.1:5173", "https://app.localhost", "http://[::1]:1"} {
		require.NoError(t, local.CheckOrigin(request("localhost:8080", "Origin", origin)), origin)
	}
	for _, origin := range []string{"http://localhost.evil.example", "http://10.0.0.1:3000", "null"} {
		require.Error(t, local.CheckOrigin(request("localhost:8080", "Origin", origin)), origin)
	}

	all := &Guard{Origins: []string{AnyOne}}
	for _, origin := range []string{"https://evil.example", "null"} {
		require.NoError(t, all.CheckOrigin(request("localhost:8080", "Origin", origin, "Sec-Fetch-Site", "cross-site")))
		require.False(t, all.TrustsOrigin(request("localhost:8080"), origin))
	}
	require.NoError(t, all.CheckOrigin(request("localhost:8080", "Sec-Fetch-Site", "cross-site")))
}
