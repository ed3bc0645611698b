package invoker

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
	"platform/invoker/discovery"
	"platform/metadata"
	"platform/partition/journal"
)

// serveSDKOver serves the services with another server than the SDK's own.
func serveSDKOver(t *testing.T, bidirectional bool, change func(*httptest.Server)) *httptest.Server {
	handler, err := newSDK().Bidirectional(bidirectional).Handler()
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(handler)
	change(s)
	t.Cleanup(s.Close)
	return s
}

func callsOfAllKinds(t *testing.T, b *bench) {
	t.Helper()
	for n, c := range []struct{ handler, input, want string }{
		{"Greet", `"you"`, `"Hello you"`}, {"Steps", `5`, `10`}, {"Nap", `20`, `"rested"`}, {"Count", `"k"`, `42`}, {"Count", `"k"`, `84`},
	} {
		_, ended := b.shard.call(greet(c.handler), byte(n+1), c.input)
		r := receive(t, ended)
		require.Nil(t, r.Failure)
		require.Equal(t, c.want, string(r.Value))
	}
}

func TestGoSDKOverHTTP1(t *testing.T) {
	for name, bidirectional := range map[string]bool{"request-response": false, "announced as bidirectional": true} {
		t.Run(name, func(t *testing.T) {
			s := serveSDKOver(t, bidirectional, func(s *httptest.Server) { s.Start() })
			b := withDeployment(t, quickConfig(), discovery.Request{URI: s.URL, UseHTTP11: true}, func(d *metadata.Deployment) {
				require.True(t, d.HTTP11)
				require.False(t, d.Bidirectional)
			})
			callsOfAllKinds(t, b)
		})
	}
}

func TestGoSDKOverTLS(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/2": true, "HTTP/1.1": false} {
		t.Run(name, func(t *testing.T) {
			s := serveSDKOver(t, http2, func(s *httptest.Server) {
				s.EnableHTTP2 = http2
				s.StartTLS()
			})
			cfg := quickConfig()
			cfg.Endpoint.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig
			b := withDeployment(t, cfg, discovery.Request{URI: s.URL}, func(d *metadata.Deployment) {
				require.Equal(t, http2, d.Bidirectional)
			})
			callsOfAllKinds(t, b)
		})
	}
}

// TestCallsDoNotWaitForTheStreamsOfTheirCallers uses an endpoint that accepts one stream per
// connection, while callers keep theirs open.
func TestCallsDoNotWaitForTheStreamsOfTheirCallers(t *testing.T) {
	s := serveSDKOver(t, true, func(s *httptest.Server) {
		s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1}
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
	})
	b := withSDK(t, quickConfig(), s.URL, nil)
	start := time.Now()
	var all []chan journal.Result
	for n := range byte(40) {
		_, ended := b.shard.call(greet("Nope"), n+1, ``)
		all = append(all, ended)
	}
	for _, ended := range all {
		require.EqualValues(t, 418, receive(t, ended).Failure.Code)
	}
	require.Less(t, time.Since(start), DefaultConfig().Defaults.InactivityTimeout, "no caller was suspended")
}

// TestClosedConnectionsCostNoAttempt uses a server that closes each connection after a response.
func TestClosedConnectionsCostNoAttempt(t *testing.T) {
	handler, err := newSDK().Handler()
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		handler(w, r)
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	cfg := quickConfig()
	cfg.Defaults.Retry.InitialInterval, cfg.Defaults.Retry.MaxInterval = time.Hour, time.Hour // a failed attempt would show
	b := withSDK(t, cfg, s.URL, nil)
	var all []chan journal.Result
	for n := range byte(60) {
		_, ended := b.shard.call(greet("Steps"), n+1, `3`)
		all = append(all, ended)
	}
	for _, ended := range all {
		require.Equal(t, `3`, string(receive(t, ended).Value))
	}
}

func TestRetryAfterOfRateLimitedEndpoints(t *testing.T) {
	for status, header := range map[int]func(time.Time) string{
		http.StatusTooManyRequests:    func(now time.Time) string { return now.Add(90 * time.Second).UTC().Format(http.TimeFormat) },
		http.StatusServiceUnavailable: func(time.Time) string { return "90" },
	} {
		synctest.Test(t, func(t *testing.T) {
			busy := func(w *wire) {
				w.head(status, http.Header{"Retry-After": {header(time.Now())}})
				w.recv.End(nil)
			}
			o := newOffline(t, policy(2, metadata.Pause), busy, fails(t))
			defer o.close()
			id, _ := o.shard.call(greeter, 1, "")
			synctest.Wait()
			st, ok := o.iv.Status(id)
			require.True(t, ok)
			require.Equal(t, string(errcode.RT0023), st.LastFailure.ErrorCode)
			require.Equal(t, 90*time.Second, time.Until(st.NextRetryAt))
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			require.Equal(t, []time.Duration{90 * time.Second}, o.gaps()[:1])
		})
	}
}
