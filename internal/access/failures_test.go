package access

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// failing is an authenticator of a port with one valid, one expired and one other token.
func failing(t *testing.T, port string) (a *Authenticator, out *bytes.Buffer, tokens map[string]string) {
	out = new(bytes.Buffer)
	now := time.Now()
	grants, tokens := map[string]Grant{}, map[string]string{}
	for name, expires := range map[string]time.Time{"ci": {}, "old": now.Add(-time.Minute)} {
		secret := NewSecret()
		tokens[name] = secret.Text
		grants[secret.ID] = Grant{Principal: Principal{Name: name, Token: secret.ID, Roles: []Role{Invoker}}, Hash: secret.Hash[:], Expires: expires}
	}
	tokens["unknown"] = NewSecret().Text
	tokens["wrong secret"] = tokens["ci"][:21] + tokens["unknown"][21:]
	f := NewFailures(slog.New(slog.NewTextHandler(out, nil)), "admin", "ingress")
	f.now = func() time.Time { return now }
	return &Authenticator{
		Required: true, Failures: f, Port: port, Foreign: port == "ingress",
		Grant: func(id string) (Grant, bool) { g, ok := grants[id]; return g, ok },
	}, out, tokens
}

func requestFrom(address, header string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/services", nil)
	r.RemoteAddr = address
	if header != "" {
		r.Header.Set("Authorization", header)
	}
	return r
}

func expectFailures(t *testing.T, f *Failures, port string, invalid, missing int) {
	t.Helper()
	for reason, n := range map[string]int{"invalid": invalid, "missing": missing} {
		got := f.ports[port].invalid.Load()
		if reason == "missing" {
			got = f.ports[port].missing.Load()
		}
		require.EqualValues(t, n, got, "%s at %s", reason, port)
	}
}

func TestFailedAuthenticationsAreCountedAndExplained(t *testing.T) {
	for name, c := range map[string]struct {
		port, token      string
		invalid, missing int
		logged           []string
	}{
		"valid":                          {"admin", "ci", 0, 0, nil},
		"expired":                        {"admin", "old", 1, 0, []string{`reason="the token has expired"`, "principal=old", "token_id=", "address=192.0.2.7", "port=admin"}},
		"revoked":                        {"admin", "unknown", 1, 0, []string{"it may have been revoked"}},
		"a guess":                        {"admin", "wrong secret", 1, 0, []string{"the secret of the token is wrong", "principal=ci"}},
		"something else":                 {"admin", "text", 1, 0, []string{"not a token of this server"}},
		"nothing":                        {"admin", "", 0, 1, nil},
		"a guess at the ingress":         {"ingress", "wrong secret", 1, 0, []string{"port=ingress"}},
		"a token of another application": {"ingress", "text", 1, 0, []string{"not a token of this server"}}, // it was rejected
	} {
		t.Run(name, func(t *testing.T) {
			a, out, tokens := failing(t, c.port)
			header, text := "", tokens[c.token]
			if c.token == "text" {
				text = "of-an-application"
			}
			if text != "" {
				header = "Bearer " + text
			}
			r := requestFrom("192.0.2.7:1", header)
			if a.Identify(r) == nil {
				a.Rejected(r)
			}
			expectFailures(t, a.Failures, c.port, c.invalid, c.missing)
			for _, part := range c.logged {
				require.Contains(t, out.String(), part)
			}
			if c.logged == nil {
				require.Empty(t, out.String())
			}
			if text != "" {
				require.NotContains(t, out.String(), text)
			}
			require.Equal(t, 4, testutil.CollectAndCount(a.Failures.Collector()))
		})
	}
	a, out, _ := failing(t, "ingress")
	require.Nil(t, a.Identify(requestFrom("192.0.2.7:1", "Bearer of-an-application")))
	expectFailures(t, a.Failures, "ingress", 0, 0)
	require.Empty(t, out.String(), "it may be meant for the handler")
	a.InvalidCallback(requestFrom("192.0.2.7:1", ""))
	expectFailures(t, a.Failures, "ingress", 1, 0)
}

// The counters are complete, and the log is bounded, whatever addresses an attacker has.
func TestTheLogOfFailedAuthenticationsIsBounded(t *testing.T) {
	a, out, tokens := failing(t, "admin")
	now := a.Failures.now()
	a.Failures.now = func() time.Time { return now }
	lines := func() int { return strings.Count(out.String(), "\n") }
	for range 100 {
		a.Identify(requestFrom("192.0.2.7:1", "Bearer "+tokens["unknown"]))
	}
	require.Equal(t, 1, lines(), "one address")
	now = now.Add(failureInterval)
	a.Identify(requestFrom("192.0.2.7:2", "Bearer "+tokens["unknown"]))
	require.Contains(t, out.String(), "omitted=99")
	out.Reset()
	const attempts = 5 * maxFailing
	for i := range attempts {
		a.Identify(requestFrom(fmt.Sprintf("[2001:db8:%x::1]:1", i), "Bearer "+tokens["unknown"]))
	}
	require.LessOrEqual(t, lines(), failureBurst, "many networks")
	require.LessOrEqual(t, len(a.Failures.failing), maxFailing)
	expectFailures(t, a.Failures, "admin", 101+attempts, 0)
	now = now.Add(time.Hour)
	out.Reset()
	a.Identify(requestFrom("192.0.2.8:2", "Bearer "+tokens["unknown"]))
	require.Regexp(t, `omitted=[1-9]\d{3}`, out.String(), "nothing is lost")
}

func TestNoFailuresAreCountedWithoutACounter(t *testing.T) {
	a := &Authenticator{Required: true, Verify: func(context.Context, string) *Principal { return nil }}
	require.Nil(t, a.Identify(requestFrom("192.0.2.7:1", "Bearer x")))
	a.Rejected(requestFrom("192.0.2.7:1", ""))
	a.InvalidCallback(requestFrom("192.0.2.7:1", ""))
}
