package ids

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func raw(t *testing.T, s string) Invocation {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return Invocation(b)
}

func TestInvocationText(t *testing.T) {
	for text, bytes := range map[string]string{
		"inv_105k1wlNFHb20spiZ5jnFiXLEB5q4Itm5q": "0000000000000001000102030405060708090a0b0c0d0e0f",
		"inv_1kAt0t9pq7gB7MWcKsjukco48au9ic33u8": "0123456789abcdef00112233445566778899aabbccddeeff",
		"inv_1gdJBtdVEcM942bjcDmb1c1khoaJe11Hbz": "493c42ed1c3cf1bc018e5257b998007db7f4f3f47e809584",
	} {
		id := raw(t, bytes)
		require.Equal(t, text, id.String())
		back, err := ParseInvocation(text)
		require.NoError(t, err)
		require.Equal(t, id, back)
	}
}

func TestDeterministicUniqueParts(t *testing.T) {
	for want, got := range map[string][16]byte{
		"6ef0e943a1ad96d1c2f9cc56d5c5f796": WorkflowUnique("", "MyWf", "k1"),
		"96faf3eb0a1c8a3aac002136c2c902b9": IdempotentUnique("", "Greeter", "", "greet", "idem-1"),
		"db8f43eca04eeb048f90d7d2327ff387": IdempotentUnique("", "Counter", "obj", "add", "idem-1"),
	} {
		require.Equal(t, want, hex.EncodeToString(got[:]))
	}
	require.NotEqual(t, WorkflowUnique("s", "MyWf", "k1"), WorkflowUnique("", "MyWf", "k1"))
}

func TestAwakeableText(t *testing.T) {
	a := Awakeable{raw(t, "0123456789abcdef00112233445566778899aabbccddeeff"), 17}
	require.Equal(t, "sign_1ASNFZ4mrze8AESIzRFVmd4iZqrvM3e7_AAAAEQ", a.String())
	for _, s := range []string{a.String(), a.String() + "=="} {
		back, err := ParseAwakeable(s)
		require.NoError(t, err)
		require.Equal(t, a, back)
	}
	for _, s := range []string{"", "prom_1ASNF", "sign_1", "sign_1ASNF", "sign_1!!!!", a.String() + "AAAA"} {
		_, err := ParseAwakeable(s)
		require.ErrorIs(t, err, errFormat, s)
	}
}

func TestMalformedInvocations(t *testing.T) {
	for name, s := range map[string]string{
		"empty":     "",
		"short":     "inv_1kAt0t9",
		"long":      "inv_1kAt0t9pq7gB7MWcKsjukco48au9ic33u80",
		"tag":       "dpl_1kAt0t9pq7gB7MWcKsjukco48au9ic33u8",
		"version":   "inv_2kAt0t9pq7gB7MWcKsjukco48au9ic33u8",
		"character": "inv_1kAt0t9pq7g-7MWcKsjukco48au9ic33u8",
		"overflow":  "inv_1ZZZZZZZZZZZ7MWcKsjukco48au9ic33u8",
		"overflow2": "inv_1kAt0t9pq7gBZZZZZZZZZZZZZZZZZZZZZZ",
	} {
		_, err := ParseInvocation(s)
		require.ErrorIs(t, err, errFormat, name)
	}
}

func TestEveryInvocationIDReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := Invocation(rapid.SliceOfN(rapid.Byte(), 24, 24).Draw(t, "id"))
		back, err := ParseInvocation(id.String())
		require.NoError(t, err)
		require.Equal(t, id, back)
	})
}

func TestDeploymentText(t *testing.T) {
	d := NewDeployment([16]byte{1, 0x8e, 0x52, 15: 9})
	back, err := ParseDeployment(string(d))
	require.NoError(t, err)
	require.Equal(t, d, back)
	for _, s := range []string{"", "dp_", "dp_1abc", "dp_2" + string(d[4:]), "dp_1" + string(d[4:25]) + "-"} {
		_, err := ParseDeployment(s)
		require.ErrorIs(t, err, errFormat, s)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("inv_1kAt0t9pq7gB7MWcKsjukco48au9ic33u8")
	f.Add("sign_1ASNFZ4mrze8AESIzRFVmd4iZqrvM3e7_AAAAEQ")
	f.Add("dp_11nGQpCZUS58gB43T6IA5cX")
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := ParseInvocation(s); err == nil && id.String() != s {
			t.Fatalf("%q reads as %s", s, id)
		}
		_, _ = ParseDeployment(s)
		if a, err := ParseAwakeable(s); err == nil {
			if _, err := ParseAwakeable(a.String()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestVQueueText(t *testing.T) {
	q := OfVQueue("tenant1", "a/b", "Greeter", "")
	require.Equal(t, Route("tenant1", ""), q.PartitionKey())
	back, err := ParseVQueue(q.String())
	require.NoError(t, err)
	require.Equal(t, q, back)
	require.NotEqual(t, q, OfVQueue("tenant1", "a", "Greeter", ""))
	require.NotEqual(t, q, OfVQueue("", "", "Greeter", "a/b"))
	for _, s := range []string{"", "vq_", "inv_" + q.String()[3:], "vq_2" + q.String()[4:], q.String() + "0", q.String()[:20]} {
		_, err := ParseVQueue(s)
		require.ErrorIs(t, err, errFormat, s)
	}
}
