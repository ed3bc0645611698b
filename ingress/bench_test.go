package ingress

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"platform/internal/cluster/routing"
	"platform/partition/journal"
	"platform/partition/machine"
)

// discard is a response writer without a cost of its own.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

func instant() *fakeInvocations {
	value := []byte(`"Hello Sarah!"`)
	return &fakeInvocations{call: func(_ context.Context, inv *machine.Invoke) (routing.Response, error) {
		return routing.Response{ID: inv.ID, Target: inv.Target, Result: journal.Result{Value: value}}, nil
	}}
}

// quiet does not record its calls.
type quiet struct{ *fakeInvocations }

func (q quiet) Call(ctx context.Context, inv *machine.Invoke, _ func()) (routing.Response, error) {
	return q.call(ctx, inv)
}

func BenchmarkCall(b *testing.B) {
	for name, m := range map[string]*Metrics{"uncounted": nil, "counted": NewMetrics(prometheus.NewRegistry())} {
		b.Run(name, func(b *testing.B) { benchmarkCall(b, m) })
	}
}

func benchmarkCall(b *testing.B, m *Metrics) {
	s := testServer(b, Config{Metrics: m}, nil)
	s.invocations = quiet{instant()}
	h := s.handler()
	text := []byte(`"Sarah"`)
	body := bytes.NewReader(text)
	u, err := url.Parse("/Greeter/strict")
	require.NoError(b, err)
	r := &http.Request{
		Method: http.MethodPost, URL: u, RequestURI: "/Greeter/strict", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type": {"application/json"}, "Content-Length": {"7"}, "User-Agent": {"Go-http-client/1.1"},
			"Accept-Encoding": {"gzip"},
		},
		ContentLength: int64(len(text)), Body: io.NopCloser(body), Host: "127.0.0.1",
	}
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(text)
		h.ServeHTTP(&discard{http.Header{}}, r)
	}
}

func BenchmarkLoopback(b *testing.B) {
	for _, version := range []string{"http1", "http2"} {
		b.Run(version, func(b *testing.B) {
			s := testServer(b, Config{}, nil)
			s.invocations = quiet{instant()}
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(b, err)
			ctx, stop := context.WithCancel(b.Context())
			done := make(chan error, 1)
			go func() { done <- s.Serve(ctx, ln) }()
			client := clientOf(version)
			target := "http://" + ln.Addr().String() + "/Greeter/strict"
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					resp, err := client.Post(target, "application/json", bytes.NewReader([]byte(`"Sarah"`)))
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
			client.CloseIdleConnections()
			stop()
			require.NoError(b, <-done)
		})
	}
}

// clientOf speaks exactly one version of HTTP.
func clientOf(version string) *http.Client {
	var p http.Protocols
	p.SetHTTP1(version == "http1")
	p.SetUnencryptedHTTP2(version == "http2")
	return &http.Client{Transport: &http.Transport{Protocols: &p, MaxIdleConnsPerHost: 64}}
}
