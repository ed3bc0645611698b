package tracing

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// recorded are the headers of the attempts that an endpoint received, by handler.
type recorded struct {
	mu      sync.Mutex
	headers map[string][]http.Header
}

func (r *recorded) of(handler string) []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.headers[handler]
}

// serveRecorded serves handlers that call each other, and records the headers of their attempts.
func serveRecorded(t *testing.T) (uri string, r *recorded) {
	r = &recorded{headers: map[string][]http.Header{}}
	endpoint, err := server.NewRestate().WithLogger(slog.DiscardHandler, false).Bind(restate.NewService("Traced").
		Handler("greet", restate.NewServiceHandler((&services{}).greet)).
		Handler("fanout", restate.NewServiceHandler(fanout)).
		Handler("sender", restate.NewServiceHandler(sender))).Handler()
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	web := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if handler, isAttempt := strings.CutPrefix(req.URL.Path, "/invoke/Traced/"); isAttempt {
			r.mu.Lock()
			r.headers[handler] = append(r.headers[handler], req.Header.Clone())
			r.mu.Unlock()
		}
		endpoint(w, req)
	})}
	web.Protocols.SetUnencryptedHTTP2(true)
	web.Protocols.SetHTTP1(true)
	go func() { _ = web.Serve(ln) }()
	t.Cleanup(func() { _ = web.Close() })
	return "http://" + ln.Addr().String(), r
}

// TestContextReachesAllAttempts calls handlers that call and send to others, with and without a
// collector: the attempts of all have the trace, its state and the baggage of the request.
func TestContextReachesAllAttempts(t *testing.T) {
	const trace = "0af7651916cd43dd8448eb211c80319c"
	large := "large=" + strings.Repeat("x", 4000)
	for name, env := range map[string]map[string]string{
		"with a collector": {"TRACING_ENDPOINT": "http://" + newReceiver(t).grpc}, "without": {},
	} {
		t.Run(name, func(t *testing.T) {
			server := harness.ServerFor(t, env)
			uri, attempts := serveRecorded(t)
			require.NoError(t, server.Register(t.Context(), uri, false))
			send := append(headers(trace), "tracestate", "vendor=1", "baggage", "user=alice;ttl=1 , "+large+",broken, region=eu")
			for path, body := range map[string]string{"Traced/fanout": "3", "Traced/sender": `"a"`} {
				r, err := server.Client.Call(t.Context(), path, []byte(body), send...)
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, r.Status, "%s", r.Body)
			}
			await(t, func() bool { return len(attempts.of("greet")) == 4 })
			for _, handler := range []string{"fanout", "sender", "greet"} {
				for _, h := range attempts.of(handler) {
					require.Equal(t, trace, strings.Split(h.Get("traceparent"), "-")[1], handler)
					require.Equal(t, []string{"vendor=1"}, h["Tracestate"], handler)
					require.Equal(t, []string{"user=alice;ttl=1," + large + ",region=eu"}, h["Baggage"], handler)
				}
			}

			// Baggage does not need a trace.
			_, err := server.Client.Call(t.Context(), "Traced/greet", []byte(`"b"`), "baggage", "alone=1")
			require.NoError(t, err)
			all := attempts.of("greet")
			require.Equal(t, []string{"alone=1"}, all[len(all)-1]["Baggage"])
		})
	}
}
