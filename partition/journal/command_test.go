package journal

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/proto/service"
)

type message interface{ MarshalVT() ([]byte, error) }

func marshal(t require.TestingT, m message) []byte {
	b, err := m.MarshalVT()
	require.NoError(t, err)
	return b
}

func TestParseCommands(t *testing.T) {
	empty, key := "", "k"
	sleep, err := ParseSleep(fromHex(t, "0880d095ffbc315802"))
	require.NoError(t, err)
	require.Equal(t, SleepCommand{WakeUpTime: 1700000000000, Completion: 2}, sleep)

	sleep, err = ParseSleep(marshal(t, &service.SleepCommandMessage{WakeUpTime: math.MaxUint64}))
	require.NoError(t, err)
	require.Equal(t, int64(math.MaxInt64), sleep.WakeUpTime)

	request := Request{
		Service: "S", Handler: "h", Key: "obj", IdempotencyKey: &empty, LimitKey: &key,
		Headers: []Header{{"a", "b"}}, Parameter: []byte("p"), IDCompletion: 1,
	}
	call, err := ParseCall(marshal(t, &service.CallCommandMessage{
		ServiceName: "S", HandlerName: "h", Key: "obj", IdempotencyKey: &empty, LimitKey: &key,
		Headers: []*service.Header{{Key: "a", Value: "b"}}, Parameter: []byte("p"),
		InvocationIdNotificationIdx: 1, ResultCompletionId: 2,
	}))
	require.NoError(t, err)
	require.Equal(t, CallCommand{Request: request, Completion: 2}, call)

	send, err := ParseOneWayCall(marshal(t, &service.OneWayCallCommandMessage{
		ServiceName: "S", HandlerName: "h", Key: "obj", IdempotencyKey: &empty, LimitKey: &key,
		Headers: []*service.Header{{Key: "a", Value: "b"}}, Parameter: []byte("p"),
		InvocationIdNotificationIdx: 1, InvokeTime: 77,
	}))
	require.NoError(t, err)
	require.Equal(t, OneWayCallCommand{Request: request, InvokeTime: 77}, send)

	set, err := ParseState(SetState, marshal(t, &service.SetStateCommandMessage{Key: []byte("k"), Value: &service.Value{Content: []byte("v")}}))
	require.NoError(t, err)
	require.Equal(t, StateCommand{Key: []byte("k"), Value: []byte("v")}, set)

	get, err := ParseState(GetLazyState, marshal(t, &service.GetLazyStateCommandMessage{Key: []byte("k"), ResultCompletionId: 4}))
	require.NoError(t, err)
	require.Equal(t, StateCommand{Key: []byte("k"), Completion: 4}, get)

	cleared, err := ParseState(ClearState, marshal(t, &service.ClearStateCommandMessage{Key: []byte("k"), Name: "n"}))
	require.NoError(t, err)
	require.Equal(t, StateCommand{Key: []byte("k")}, cleared)

	_, err = ParseState(ClearAllState, nil)
	require.ErrorIs(t, err, ErrPayload)

	keys, err := ParseGetLazyStateKeys(marshal(t, &service.GetLazyStateKeysCommandMessage{ResultCompletionId: 8}))
	require.NoError(t, err)
	require.Equal(t, uint32(8), keys)
}

func TestParseOutput(t *testing.T) {
	r, err := ParseOutput(fromHex(t, "72060a0422686922"))
	require.NoError(t, err)
	require.Equal(t, Result{Value: []byte(`"hi"`)}, r)

	r, err = ParseOutput(fromHex(t, "7200"))
	require.NoError(t, err)
	require.Equal(t, Result{}, r)

	r, err = ParseOutput(marshal(t, &service.OutputCommandMessage{Result: &service.OutputCommandMessage_Failure{Failure: &service.Failure{
		Code: 404, Message: "no", Metadata: []*service.FailureMetadata{{Key: "a", Value: "b"}},
	}}}))
	require.NoError(t, err)
	require.Equal(t, Result{Failure: &Failure{Code: 404, Message: "no", Metadata: []Metadata{{"a", "b"}}}}, r)

	for _, bad := range []string{"", "62016e", "7206", "ff"} {
		_, err = ParseOutput(fromHex(t, bad))
		require.ErrorIs(t, err, ErrPayload, bad)
	}
}

func TestNotificationsNeedIDAndResult(t *testing.T) {
	for _, bad := range []string{"", "0801", "2200", "08"} {
		_, err := ParseNotification(fromHex(t, bad))
		require.ErrorIs(t, err, ErrPayload, bad)
	}
}

func TestParsedBytesShareThePayload(t *testing.T) {
	payload := fromHex(t, "72060a0422686922")
	r, err := ParseOutput(payload)
	require.NoError(t, err)
	require.Same(t, &payload[4], &r.Value[0])
}

func TestBuiltPayloadsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Uint32().Draw(t, "id")
		text := rapid.StringN(0, 300, -1)
		value := rapid.SliceOfN(rapid.Byte(), 0, 300)
		var want Notification
		var payload []byte
		switch rapid.IntRange(0, 4).Draw(t, "variant") {
		case 0:
			want, payload = Notification{Variant: Void}, NewVoid(id)
		case 1:
			v := value.Draw(t, "value")
			want, payload = Notification{Variant: Value, Value: v}, NewCompletion(id, Result{Value: v})
		case 2:
			f := &Failure{Code: rapid.Uint32().Draw(t, "code"), Message: text.Draw(t, "message")}
			for range rapid.IntRange(0, 3).Draw(t, "metadata") {
				f.Metadata = append(f.Metadata, Metadata{text.Draw(t, "key"), text.Draw(t, "value")})
			}
			want, payload = Notification{Variant: FailureValue, Failure: f}, NewCompletion(id, Result{Failure: f})
		case 3:
			s := text.Draw(t, "invocation")
			want, payload = Notification{Variant: InvocationID, InvocationID: s}, NewInvocationID(id, s)
		case 4:
			keys := rapid.SliceOfN(value, 0, 4).Draw(t, "keys")
			want, payload = Notification{Variant: StateKeys, StateKeys: keys}, NewStateKeys(id, keys)
		}
		require.Equal(t, len(payload), cap(payload))
		want.ID = Completion(id)
		got, err := ParseNotification(payload)
		require.NoError(t, err)
		require.Equal(t, normal(want), normal(got))
		// The generated code produces the same bytes.
		var m service.NotificationTemplate
		require.NoError(t, m.UnmarshalVT(payload))
		require.Equal(t, marshal(t, &m), payload)
	})
}

// normal removes the difference between nil and empty, which the wire format does not have.
func normal(n Notification) Notification {
	n.Value = append([]byte{}, n.Value...)
	keys := [][]byte{}
	for _, k := range n.StateKeys {
		keys = append(keys, append([]byte{}, k...))
	}
	n.StateKeys = keys
	return n
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"72060a0422686922", "0880d095ffbc315802", "08012a030a0131", "0801720131", "0a0102120101", "22080a01021201012801", "220c12010122050a010228012801", "10012200"} {
		f.Add(fromHexSeed(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = ParseOutput(b)
		_, _ = ParseSleep(b)
		_, _ = ParseCall(b)
		_, _ = ParseOneWayCall(b)
		_, _ = ParseGetLazyStateKeys(b)
		for _, typ := range []Type{GetLazyState, SetState, ClearState} {
			_, _ = ParseState(typ, b)
		}
		for _, typ := range []Type{GetPromise, PeekPromise, CompletePromise} {
			_, _ = ParsePromise(typ, b)
		}
		if c, err := ParseSendSignal(b); err == nil && (!c.ID.Signal || c.ID == NamedSignal("")) {
			t.Fatalf("%x decodes to signal %v", b, c.ID)
		}
		if c, err := ParseCompleteAwakeable(b); err == nil && (!c.ID.Signal || c.Result == nil) {
			t.Fatalf("%x decodes to awakeable %v", b, c)
		}
		_, _ = ParseAttach(AttachInvocation, b)
		CompletionsOf(Entry{Type: Call, Payload: b})
		if n, err := ParseNotification(b); err == nil {
			_ = n.Settled()
		}
		if id, payload, err := RunCompletionOf(b); err == nil {
			n, err := ParseNotification(payload)
			if _, ok := n.Result(); err != nil || !ok || n.ID != Completion(id) {
				t.Fatalf("proposal %x became %x", b, payload)
			}
		}
		for _, protocol := range []uint8{5, 7} {
			f, err := ParseSuspension(b, protocol)
			if err != nil {
				continue
			}
			if f.Empty() || f.Depth() > MaxDepth {
				t.Fatalf("%x decodes to %v", b, f)
			}
			all := func(NotificationID) Settled { return Succeeded }
			if !hollow(f) && !f.Over(all) {
				t.Fatalf("%x is not over although everything has arrived", b)
			}
			f.Over(func(NotificationID) Settled { return Pending })
		}
	})
}
