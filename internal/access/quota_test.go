package access

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuotasAreOfEachClient(t *testing.T) {
	require.Nil(t, NewQuotas(0, 0))
	exceeded, _ := (*Quotas)(nil).Admit(nil)
	require.Empty(t, exceeded)

	now := time.Unix(1_700_000_000, 0)
	q := NewQuotas(5, 100)
	q.now = func() time.Time { return now }
	ask := func(client, body string) (Quota, time.Duration) {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		if r.RemoteAddr = client; !strings.Contains(client, ":") {
			r = r.WithContext(With(r.Context(), &Principal{Name: client, Roles: []Role{Invoker}}))
		}
		exceeded, after := q.Admit(r)
		if exceeded == "" {
			_, err := io.Copy(io.Discard, r.Body)
			require.NoError(t, err)
		}
		return exceeded, after
	}
	for range 5 * quotaBurst {
		exceeded, _ := ask("shop", "")
		require.Empty(t, exceeded)
	}
	exceeded, after := ask("shop", "")
	require.Equal(t, QuotaRequests, exceeded)
	require.Equal(t, time.Second, after)
	for _, other := range []string{"web", "10.0.0.1:1", "[2001:db8::1]:1"} {
		exceeded, _ := ask(other, "")
		require.Empty(t, exceeded, "other clients have a quota of their own")
	}
	now = now.Add(time.Second)
	for range 5 {
		exceeded, _ := ask("shop", "")
		require.Empty(t, exceeded)
	}

	exceeded, _ = ask("10.0.0.9:1", strings.Repeat("x", 100*quotaBurst+500))
	require.Empty(t, exceeded, "one large body is accepted")
	exceeded, after = ask("10.0.0.9:2", "")
	require.Equal(t, QuotaBytes, exceeded, "another port is the same client")
	require.Equal(t, 5*time.Second, after)
	now = now.Add(5 * time.Second)
	exceeded, _ = ask("10.0.0.9:3", "")
	require.Empty(t, exceeded)

	for range 5 * quotaBurst {
		ask("[2001:db8:1::1]:1", "")
	}
	exceeded, _ = ask("[2001:db8:1::2]:1", "")
	require.Equal(t, QuotaRequests, exceeded, "a host has many addresses of IPv6")
}

func TestQuotasAreBounded(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	q := NewQuotas(1, 0)
	q.now = func() time.Time { return now }
	address := func(i int) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = fmt.Sprintf("[2001:db8:%x:%x::1]:1", i>>16, i&0xffff)
		return r
	}
	for i := range maxQuotas + 100 {
		q.of(address(i), now).requests.AllowN(now, 1)
	}
	require.LessOrEqual(t, len(q.addresses), maxQuotas+1)
	for range 2 * quotaBurst {
		q.Admit(address(maxQuotas + 200))
	}
	exceeded, _ := q.Admit(address(maxQuotas + 300))
	require.Equal(t, QuotaRequests, exceeded, "further addresses share a quota")
	shop := address(0)
	exceeded, _ = q.Admit(shop.WithContext(With(shop.Context(), &Principal{Name: "shop", Roles: []Role{Invoker}})))
	require.Empty(t, exceeded, "clients without credentials do not use up the quotas of principals")

	now = now.Add(time.Minute)
	q.of(address(maxQuotas+400), now)
	require.Less(t, len(q.addresses), maxQuotas)
}

func TestLargeQuotasDoNotOverflow(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body"))
	exceeded, _ := NewQuotas(math.MaxInt64, math.MaxInt64).Admit(r)
	require.Empty(t, exceeded)
	_, err := io.Copy(io.Discard, r.Body)
	require.NoError(t, err)
}
