package journal

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Journals contain these bytes while a state update is queued.
func TestGoldenBytesOfAStateReplacement(t *testing.T) {
	r := &StateReplacement{State: []StatePair{{[]byte("a"), []byte("1")}, {[]byte("b"), nil}}, Version: "v"}
	b := NewStateReplacement(r)
	require.Equal(t, "0a06"+"0a0161"+"120131"+"0a05"+"0a0162"+"1200"+"120176", hex.EncodeToString(b))
	require.Empty(t, NewStateReplacement(&StateReplacement{}))
}

func TestStateReplacementRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOfN(rapid.Byte(), 0, 200)
		want := &StateReplacement{Version: rapid.StringN(0, 50, -1).Draw(t, "version")}
		for range rapid.IntRange(0, 5).Draw(t, "pairs") {
			want.State = append(want.State, StatePair{bytes.Draw(t, "key"), bytes.Draw(t, "value")})
		}
		b := NewStateReplacement(want)
		got, err := ParseStateReplacement(b)
		require.NoError(t, err)
		require.Equal(t, want, got)
		if len(b) > 0 { // a prefix is never accepted as the whole
			cut := rapid.IntRange(1, len(b)-1).Draw(t, "cut")
			if part, err := ParseStateReplacement(b[:cut]); err == nil {
				require.Equal(t, b[:cut], NewStateReplacement(part))
			}
		}
	})
}

func TestInvalidStateReplacementsAreRejected(t *testing.T) {
	for name, b := range map[string]string{
		"input of a handler": "72060a0422686922",
		"number for a pair":  "0801",
		"number for a key":   "0a020801",
		"unknown field":      "1a0161",
		"field of a pair":    "0a031a0161",
		"cut":                "0a06",
		"no tag":             "ff",
	} {
		_, err := ParseStateReplacement(fromHex(t, b))
		require.ErrorIs(t, err, ErrPayload, name)
	}
}

func FuzzStateReplacement(f *testing.F) {
	f.Add(fromHexSeed("0a060a01611201310a050a01621200120176"))
	f.Add(fromHexSeed("0801"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseStateReplacement(b)
		if err != nil {
			return
		}
		again, err := ParseStateReplacement(NewStateReplacement(r))
		require.NoError(t, err)
		require.Equal(t, len(r.State), len(again.State))
		require.Equal(t, r.Version, again.Version)
	})
}
