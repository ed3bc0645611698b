package journal

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/proto/service"
)

func fromHex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

// The bytes are those of the service protocol's worked sequences and similar ones. They
// must never change: journals contain them.
func TestGoldenBytesOfServerPayloads(t *testing.T) {
	const callee = "inv_1kAt0t9pq7gB7MWcKsjukco48au9ic33u8"
	full := &Failure{Code: 409, Message: "Cancelled", Metadata: []Metadata{{"a", "b"}, {"", "v"}, {"k", ""}}}
	for name, c := range map[string]struct {
		got  []byte
		want string
	}{
		"input":                    {NewInput(nil, []byte(`"hi"`)), "72060a0422686922"},
		"input, empty value":       {NewInput(nil, nil), "7200"},
		"input with headers":       {NewInput([]Header{{"a", "b"}, {"c", ""}}, []byte("x")), "0a060a0161120162" + "0a030a0163" + "72030a0178"},
		"run completion":           {NewCompletion(1, Result{Value: []byte("1")}), "08012a030a0131"},
		"sleep completion":         {NewVoid(2), "08022200"},
		"state absent":             {NewVoid(1), "08012200"},
		"state present but empty":  {NewCompletion(1, Result{Value: []byte{}}), "08012a00"},
		"completion id zero":       {NewVoid(0), "08002200"},
		"failure":                  {NewCompletion(300, Result{Failure: &Failure{Code: 500, Message: "no"}}), "08ac02" + "3207" + "08f403" + "12026e6f"},
		"empty failure":            {NewCompletion(1, Result{Failure: &Failure{}}), "08013200"},
		"failure with metadata":    {NewCompletion(1, Result{Failure: full}), "0801" + "3220" + "089903" + "120943616e63656c6c6564" + "1a060a0161120162" + "1a03120176" + "1a030a016b"},
		"invocation id":            {NewInvocationID(1, callee), "0801820126" + hex.EncodeToString([]byte(callee))},
		"state keys":               {NewStateKeys(7, [][]byte{[]byte("a"), {}, []byte("bc")}), "0807" + "8a0109" + "0a0161" + "0a00" + "0a026263"},
		"no state keys":            {NewStateKeys(7, nil), "08078a0100"},
		"cancel":                   {NewSignal(NumberedSignal(CancelSignal), nil), "10012200"},
		"signal with value":        {NewSignal(NumberedSignal(17), &Result{Value: []byte("v")}), "10112a030a0176"},
		"named signal with result": {NewSignal(NamedSignal("go"), &Result{Failure: &Failure{Code: 1}}), "1a02676f" + "32020801"},
	} {
		require.Equal(t, c.want, hex.EncodeToString(c.got), name)
		require.Equal(t, len(c.got), cap(c.got), "%s: size is not exact", name)
	}
}

func TestRunCompletionOfAProposal(t *testing.T) {
	id, payload, err := RunCompletionOf(fromHex(t, "0801720131"))
	require.NoError(t, err)
	require.Equal(t, uint32(1), id)
	require.Equal(t, "08012a030a0131", hex.EncodeToString(payload))

	proposal, err := (&service.ProposeRunCompletionMessage{
		ResultCompletionId: 9,
		Result:             &service.ProposeRunCompletionMessage_Failure{Failure: &service.Failure{Code: 500, Message: "x"}},
	}).MarshalVT()
	require.NoError(t, err)
	_, payload, err = RunCompletionOf(proposal)
	require.NoError(t, err)
	n, err := ParseNotification(payload)
	require.NoError(t, err)
	require.Equal(t, Notification{ID: Completion(9), Variant: FailureValue, Failure: &Failure{Code: 500, Message: "x"}}, n)
	require.Equal(t, Failed, n.Settled())

	_, payload, err = RunCompletionOf(fromHex(t, "08017200"))
	require.NoError(t, err)
	require.Equal(t, "08012a00", hex.EncodeToString(payload), "an empty value is a value")

	_, _, err = RunCompletionOf(fromHex(t, "0801"))
	require.ErrorIs(t, err, ErrPayload)
}

func TestTypeNames(t *testing.T) {
	require.Equal(t, "Command: Sleep", Sleep.String())
	require.Equal(t, "Notification: Sleep", SleepCompletion.String())
	require.Equal(t, "Notification: Signal", Signal.String())
	require.Equal(t, "Command: 0x40f", Type(0x040F).String())
	require.NotEmpty(t, names[CompleteAwakeable])
	require.False(t, Type(0xFC00).IsNotification())
	require.False(t, Type(0x03FF).IsCommand())
}
