package tracing

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// protocols are the values of OTEL_EXPORTER_OTLP_PROTOCOL.
var protocols = []string{"grpc", "http/protobuf"}

// authority issues the certificates of a collector that requires one of its clients.
func authority(t *testing.T) (*harness.Certificates, *tls.Config) {
	certificates, err := harness.NewCertificates()
	require.NoError(t, err)
	cert, key, err := certificates.Issue()
	require.NoError(t, err)
	own, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	return certificates, &tls.Config{
		Certificates: []tls.Certificate{own}, ClientCAs: certificates.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
		NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12,
	}
}

// write writes a file of a test and returns its path.
func write(t *testing.T, name string, content []byte) (path string) {
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

// clientOf adds a certificate of the server as a client to its environment.
func clientOf(t *testing.T, certificates *harness.Certificates, env map[string]string) {
	cert, key, err := certificates.Issue()
	require.NoError(t, err)
	env["OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"] = write(t, "client.pem", cert)
	env["OTEL_EXPORTER_OTLP_CLIENT_KEY"] = write(t, "client.key", key)
}

// greets calls a handler often, which nothing may delay or fail.
func greets(t *testing.T, server *harness.Server) {
	require.NoError(t, server.Register(t.Context(), (&services{}).serve(t), false))
	for range 100 {
		r, err := server.Client.Call(t.Context(), "Traced/greet", []byte(`"x"`), headers(trace)...)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.Status)
	}
}

// TestACollectorWithTLS has a collector whose authority only the environment names, and which
// requires a certificate of the server. All signals arrive, with the headers of the environment.
func TestACollectorWithTLS(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			certificates, secure := authority(t)
			collector, env := newSignalsTLS(t, protocol, secure)
			env["OTEL_EXPORTER_OTLP_CERTIFICATE"] = write(t, "ca.pem", certificates.Authority())
			env["OTEL_EXPORTER_OTLP_HEADERS"] = "x-team=pay%20ments,x-other=1"
			clientOf(t, certificates, env)
			server := startWith(t, env, nil)
			greets(t, server)
			await(t, func() bool { return collector.from("pay ments") })
			await(t, func() bool { count, _ := collector.requests(); return count == 100 })
			require.Empty(t, lines(server, "could not be exported")) // a busy machine may cause other warnings
		})
	}
}

// TestATracingEndpointWithTLS has the configuration name the collector, and the environment its
// authority.
func TestATracingEndpointWithTLS(t *testing.T) {
	for protocol, scheme := range map[string]string{"grpc": "https://", "http/protobuf": "otlp+https://"} {
		t.Run(protocol, func(t *testing.T) {
			certificates, secure := authority(t)
			collector, env := newSignalsTLS(t, protocol, secure)
			_, address, _ := strings.Cut(env["OTEL_EXPORTER_OTLP_ENDPOINT"], "//")
			env = map[string]string{"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": write(t, "ca.pem", certificates.Authority())}
			clientOf(t, certificates, env)
			server := startWith(t, env, map[string]string{"TRACING_ENDPOINT": scheme + address, "TRACING_HEADERS": `{ "x-team" = "payments" }`})
			greets(t, server)
			await(t, func() bool {
				collector.mu.Lock()
				defer collector.mu.Unlock()
				return collector.teams["traces payments"]
			})
		})
	}
}

// TestACollectorThatIsNotTrusted has the wrong authority, and then no certificate of the server:
// calls succeed, and the log says once per signal what is wrong.
func TestACollectorThatIsNotTrusted(t *testing.T) {
	for _, protocol := range protocols {
		for name, want := range map[string]string{
			"wrong authority":       "certificate signed by unknown authority",
			"no client certificate": "err=", // with TLS 1.3 the client may write before it reads the refusal
		} {
			if protocol == "grpc" && name != "wrong authority" {
				continue // gRPC retries for 10 seconds before it tells
			}
			t.Run(name+" "+protocol, func(t *testing.T) {
				certificates, secure := authority(t)
				other, _ := authority(t)
				collector, env := newSignalsTLS(t, protocol, secure)
				trusted := other
				if name != "wrong authority" {
					trusted = certificates
				}
				env["OTEL_EXPORTER_OTLP_CERTIFICATE"] = write(t, "ca.pem", trusted.Authority())
				server := startWith(t, env, nil)
				greets(t, server)
				for _, signal := range []string{"signal=traces", "signal=logs", "metrics could not be exported"} {
					await(t, func() bool { return len(lines(server, signal)) > 0 })
					require.Len(t, lines(server, signal), 1)
					require.Contains(t, lines(server, signal)[0], want)
				}
				require.NoError(t, server.Stop())
				for line := range strings.Lines(server.Process.LogTail(1000)) {
					require.Contains(t, line, "platform", "all lines have the format of the log")
				}
				collector.mu.Lock()
				defer collector.mu.Unlock()
				require.Zero(t, collector.spans+len(collector.records)+len(collector.metrics))
			})
		}
	}
}

// lines returns the lines of the log with a text.
func lines(server *harness.Server, text string) (found []string) {
	for line := range strings.Lines(server.Process.LogTail(1000)) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}
