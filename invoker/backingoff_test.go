package invoker

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/ids"
	"platform/invoker/protocol"
	"platform/metadata"
)

// When an endpoint is down, all invocations of a node may wait for their next attempt.
func TestInvocationsThatBackOffHoldLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count, text = 200, 60 << 10
		long := func(s string) string { return hex.EncodeToString(protowire.AppendString(nil, strings.Repeat(s, text))) }
		message := frame(protocol.Error, "08f403"+"12"+long("m")+"1a"+long("s"))
		cfg := policy(0, metadata.Pause)
		o := newOffline(t, cfg, func(w *wire) {
			w.ok()
			w.send(t, message)
		})
		defer func() {
			o.close()
			require.Zero(t, o.iv.failureTexts.Load())
		}()
		for n := range uint64(count) {
			unique := [16]byte(binary.BigEndian.AppendUint64(make([]byte, 8, 16), n+1))
			o.shard.callAs(ids.NewInvocation(n, unique), greeter, `"`+strings.Repeat("i", keptInput-100)+`"`)
		}
		time.Sleep(cfg.Defaults.Retry.InitialInterval / 2)
		synctest.Wait()
		o.session.mu.Lock()
		defer o.session.mu.Unlock()
		require.Len(t, o.session.tasks, count)
		held, described := 0, 0
		for _, task := range o.session.tasks {
			require.Equal(t, backingOff, task.state)
			require.NotEmpty(t, task.last.Message)
			held += len(task.input) + len(task.last.Message) + len(task.last.Stacktrace) + len(task.last.RelatedName)
			require.Nil(t, task.input)
			if len(task.last.Stacktrace) == text {
				described++
			}
		}
		require.LessOrEqual(t, held, maxFailureTexts+count*briefText)
		require.Positive(t, described, "a few are described in full")
		require.LessOrEqual(t, o.iv.failureTexts.Load(), int64(maxFailureTexts))
	})
}
