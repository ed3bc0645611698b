package invoker

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/machine"
)

func cpu() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

// drive runs b.N invocations, callers at a time.
func drive(tb *testing.B, b *bench, to machine.Target, input string, callers int) {
	var next atomic.Int64
	tb.ReportAllocs()
	before := cpu()
	tb.ResetTimer()
	done := make(chan struct{})
	for range callers {
		go func() {
			defer func() { done <- struct{}{} }()
			for n := next.Add(1); n <= int64(tb.N); n = next.Add(1) {
				var unique [16]byte
				binary.BigEndian.PutUint64(unique[8:], uint64(n))
				id := ids.NewInvocation(uint64(n), unique)
				ended := b.shard.ending(id)
				b.shard.callAs(id, to, input)
				<-ended
			}
		}()
	}
	for range callers {
		<-done
	}
	tb.StopTimer()
	tb.ReportMetric(float64(cpu()-before)/float64(tb.N)/1000, "µs-cpu/op")
}

// elsewhere serves the Go SDK in another process, so that the CPU reported is that
// of attempts and of the partition in memory. TestMain is that process's main.
func elsewhere(tb *testing.B) string {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "INVOKER_TEST_SERVE=1")
	in, err := child.StdinPipe() // it ends when this is closed
	require.NoError(tb, err)
	out, err := child.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, child.Start())
	tb.Cleanup(func() {
		in.Close()
		_ = child.Wait()
	})
	uri, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(tb, err)
	return strings.TrimSpace(uri)
}

func BenchmarkGoSDK(tb *testing.B) {
	uri := elsewhere(tb)
	for _, callers := range []int{1, 64} {
		tb.Run(fmt.Sprint("echo/", callers), func(tb *testing.B) {
			drive(tb, withSDK(tb, DefaultConfig(), uri, nil), greet("Greet"), `"hi"`, callers)
		})
		tb.Run(fmt.Sprint("steps/", callers), func(tb *testing.B) {
			drive(tb, withSDK(tb, DefaultConfig(), uri, nil), greet("Steps"), `10`, callers)
		})
		tb.Run(fmt.Sprint("object/", callers), func(tb *testing.B) {
			add := machine.Target{Service: "Counter", Key: "k", Handler: "Add", Type: target.ObjectExclusive}
			drive(tb, withSDK(tb, DefaultConfig(), uri, nil), add, `1`, callers)
		})
	}
}
