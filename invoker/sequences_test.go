package invoker

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
)

func hexOf(s string) string { return hex.EncodeToString([]byte(s)) }

// versions runs a test for each version that the server negotiates by default.
func versions(t *testing.T, test func(t *testing.T, use func(*bench), version string)) {
	for v := int32(5); v <= 6; v++ {
		t.Run(fmt.Sprint("v", v), func(t *testing.T) {
			use := func(b *bench) { b.change(func(d *metadata.Deployment) { d.MaxProtocol = v }) }
			test(t, use, fmt.Sprintf("application/vnd.restate.invocation.v%d", v))
		})
	}
}

func TestEcho(t *testing.T) {
	versions(t, func(t *testing.T, use func(*bench), contentType string) {
		var id ids.Invocation
		checked := make(chan struct{})
		b := scripted(t, quickConfig(), func(x *exchange) {
			defer close(checked)
			if got := x.r.Header.Get("Content-Type"); got != contentType || x.r.Header.Get("Accept") != contentType {
				t.Errorf("content type %q", got)
			}
			if x.r.URL.Path != "/invoke/Greeter/greet" || x.r.Method != http.MethodPost || x.r.ContentLength != -1 {
				t.Errorf("%s %s %d", x.r.Method, x.r.URL.Path, x.r.ContentLength)
			}
			if x.r.Header.Get("X-Restate-Invocation-Id") != id.String() {
				t.Errorf("headers %v", x.r.Header)
			}
			start, entries := x.replay(1)
			want := "0a18" + hex.EncodeToString(id[:]) + "1226" + hexOf(id.String()) + "18012801"
			if start[:len(want)] != want {
				t.Errorf("start %s, want %s", start, want)
			}
			if v6 := len(start) > len(want); v6 != (contentType[len(contentType)-1] == '6') {
				t.Errorf("seed %s", start[len(want):])
			}
			if (entries[0] != message{journal.Input, "72060a0422686922"}) {
				t.Errorf("entry %v", entries[0])
			}
			x.head()
			x.send(outputHi)
			x.send(end)
			x.expectEnd()
		})
		use(b)
		id = ids.NewInvocation(ids.HashKey(""), [16]byte{15: 1})
		_, ended := b.shard.call(greeter, 1, `"hi"`)
		require.Equal(t, `"hi"`, string(receive(t, ended).Value))
		<-checked
		require.Equal(t, [][]machine.StepKind{{machine.StepCommand, machine.StepEnd}}, b.shard.proposed(),
			"an output and the end are one proposal even if they come apart")
	})
}

func TestRunSleepSuspendAndResume(t *testing.T) {
	versions(t, func(t *testing.T, use func(*bench), _ string) {
		cfg := quickConfig()
		cfg.Defaults.InactivityTimeout = time.Second
		b := scripted(t, cfg, func(x *exchange) {
			x.replay(1)
			x.head()
			x.send("0411000000000005 5801620172")
			x.send("0005000000000005 0801720131")
			x.expect(journal.RunCompletion, "08012a030a0131")
			wake := journalMillis(time.Now().Add(time.Hour))
			x.send(frame(journal.Sleep, "08"+wake+"5802"))
			x.expectEnd() // inactivity
			x.send("0001000000000006 0a0102120101")
		}, func(x *exchange) {
			_, entries := x.replay(5)
			var kinds []journal.Type
			for _, e := range entries {
				kinds = append(kinds, e.kind)
			}
			want := []journal.Type{journal.Input, journal.Run, journal.RunCompletion, journal.Sleep, journal.SleepCompletion}
			if fmt.Sprint(kinds) != fmt.Sprint(want) {
				t.Errorf("replayed %v", kinds)
			}
			if entries[1].payload != "5801620172" || entries[2].payload != "08012a030a0131" || entries[4].payload != "08022200" {
				t.Errorf("replayed %v", entries)
			}
			x.head()
			x.send(outputHi + end)
			x.expectEnd()
		})
		use(b)
		id, ended := b.shard.call(greeter, 1, `"hi"`)
		b.shard.await(id, machine.Suspended)
		b.shard.fire(0)
		require.Equal(t, `"hi"`, string(receive(t, ended).Value))
	})
}

// journalMillis is a time as the varint of a protobuf field, in hex.
func journalMillis(at time.Time) string {
	var b []byte
	for v := uint64(at.UnixMilli()); ; v >>= 7 {
		if v < 0x80 {
			return hex.EncodeToString(append(b, byte(v)))
		}
		b = append(b, byte(v)|0x80)
	}
}

// frame is a message in hex.
func frame(kind journal.Type, payload string) string {
	payload = strings.ReplaceAll(payload, " ", "")
	return fmt.Sprintf("%04x0000%08x%s", uint16(kind), len(payload)/2, payload)
}

func TestObjectWithState(t *testing.T) {
	versions(t, func(t *testing.T, use func(*bench), _ string) {
		set5 := frame(journal.SetState, "0a05"+hexOf("count")+"1a030a0135")
		b := scripted(t, quickConfig(), func(x *exchange) {
			x.replay(1)
			x.head()
			x.send(set5 + outputHi + end)
			x.expectEnd()
		}, func(x *exchange) {
			start, _ := x.replay(1)
			// One entry of state, nothing partial, the key.
			want := "1801" + "220a0a05" + hexOf("count") + "120135" + "3203" + hexOf("obj")
			if got := start[2*(2+24+2+38) : 2*(2+24+2+38)+len(want)]; got != want {
				t.Errorf("start %s, want %s", got, want)
			}
			x.head()
			x.send(frame(journal.GetEagerState, "0a05"+hexOf("count")+"72030a0135"))
			x.send(frame(journal.SetState, "0a05"+hexOf("count")+"1a030a0137"))
			x.send(outputHi + end)
			x.expectEnd()
		})
		use(b)
		_, first := b.shard.call(counter("obj"), 1, "5")
		_, second := b.shard.call(counter("obj"), 2, "2")
		receive(t, first)
		receive(t, second)
		entries, _, err := b.shard.State(counter("obj").Object(), 1000)
		require.NoError(t, err)
		require.Equal(t, []machine.StateEntry{{Key: []byte("count"), Value: []byte("7")}}, entries)
	})
}

func TestLongKeysAreOnlyInTheStartMessage(t *testing.T) {
	for key, header := range map[string]string{"a b/": "a%20b%2F", strings.Repeat("k", 2<<20): ""} {
		b := scripted(t, quickConfig(), func(x *exchange) {
			if got := x.r.Header.Get("x-restate-service-key"); got != header {
				t.Errorf("header %.100q, want %q", got, header)
			}
			if start, _ := x.replay(1); !strings.Contains(start, hexOf(key)) {
				t.Error("the start lacks the key")
			}
			x.head()
			x.send(outputHi + end)
			x.expectEnd()
		})
		_, ended := b.shard.call(counter(key), 1, "1")
		receive(t, ended)
	}
}

func TestLazyState(t *testing.T) {
	versions(t, func(t *testing.T, use func(*bench), _ string) {
		cfg := quickConfig()
		cfg.EagerStateLimit = 0
		b := scripted(t, cfg, func(x *exchange) {
			x.replay(1)
			x.head()
			x.send(frame(journal.GetLazyState, "0a01615801"))
			x.expect(journal.GetLazyStateCompletion, "08012200")
			x.send(frame(journal.SetState, "0a01611a00"))
			x.send(frame(journal.GetLazyState, "0a01615802"))
			x.expect(journal.GetLazyStateCompletion, "08022a00")
			x.send(frame(journal.GetLazyStateKeys, "5803"))
			x.expect(journal.GetLazyStateKeysCompletion, "08038a01030a0161")
			x.send(outputHi + end)
			x.expectEnd()
		})
		use(b)
		_, ended := b.shard.call(counter("obj"), 1, "5")
		receive(t, ended)
	})
}

func TestCall(t *testing.T) {
	versions(t, func(t *testing.T, use func(*bench), _ string) {
		callee := make(chan string, 1)
		b := scripted(t, quickConfig(), func(x *exchange) {
			x.replay(1)
			x.head()
			body := "0a07" + hexOf("Counter") + "1203" + hexOf("add") + "1a0132" + "2a03" + hexOf("obj") + "5001" + "5802"
			x.send(frame(journal.Call, body))
			m, _ := x.read()
			if m.kind != journal.CallInvocationIDCompletion || m.payload[:10] != "0801820126" {
				t.Errorf("%+v", m)
			}
			id, _ := hex.DecodeString(m.payload[10:])
			callee <- string(id)
			x.expect(journal.CallCompletion, "08022a060a0422686922")
			x.send(outputHi + end)
			x.expectEnd()
		}, func(x *exchange) {
			if x.r.URL.Path != "/invoke/Counter/add" || x.r.Header.Get("X-Restate-Service-Key") != "obj" {
				t.Errorf("%s %v", x.r.URL.Path, x.r.Header)
			}
			_, entries := x.replay(1)
			if entries[0].payload != "72030a0132" {
				t.Errorf("%v", entries)
			}
			x.head()
			x.send(outputHi + end)
			x.expectEnd()
		})
		use(b)
		_, ended := b.shard.call(greeter, 1, `"hi"`)
		receive(t, ended)
		id, err := ids.ParseInvocation(<-callee)
		require.NoError(t, err)
		require.Equal(t, ids.HashKey("obj"), id.PartitionKey())
	})
}
