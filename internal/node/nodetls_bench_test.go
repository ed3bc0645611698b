package node

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"platform/internal/certs"
	"platform/internal/config"
)

// BenchmarkClusterCall measures calls by 64 clients to three nodes in this process, with plain
// connections between nodes and with certificates. The metric cpu-µs/op includes the clients
// and the service, which are the same in both.
func BenchmarkClusterCall(b *testing.B) {
	for _, mode := range []config.TLSMode{config.TLSOff, config.TLSRequire} {
		b.Run(string(mode), func(b *testing.B) {
			ca, err := certs.NewAuthority("localcluster", time.Hour)
			if err != nil {
				b.Fatal(err)
			}
			dir := b.TempDir()
			c := newTestClusterWith(b, 3, func(cfg *config.Config) {
				if mode != config.TLSOff {
					cfg.Security.NodeTLS = nodeFiles(b, ca, dir, cfg.NodeName)
				}
				cfg.Security.NodeTLS.Mode = mode
			})
			c.healthy(3, 0, 1, 2)
			c.counter(0)
			c.replicated(0, 1, 2)
			transport := &http.Transport{MaxIdleConnsPerHost: 64}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			var next, failed atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			before := cpuTime()
			for range 64 {
				wg.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						url := fmt.Sprintf("http://127.0.0.1:%d/platform/call/Counter/k%d/add", c.nodes[n%3].cfg.Ingress.BindPort, n%512)
						resp, err := client.Post(url, "application/json", strings.NewReader("1"))
						if err != nil {
							failed.Add(1)
							continue
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
						if resp.StatusCode != http.StatusOK {
							failed.Add(1)
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
			if failed.Load() > 0 {
				b.Fatalf("%d of %d calls failed", failed.Load(), b.N)
			}
		})
	}
}

func cpuTime() time.Duration {
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
