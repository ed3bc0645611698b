package membership

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

func described() Member {
	return Member{
		Meta:        Meta{ClusterID: "cluster", Version: "1.0", NodeID: 300, Draining: true},
		Name:        "a",
		Incarnation: "inc", Address: "host:5122", Started: time.UnixMilli(1_700_000_000_000),
	}
}

// TestEncodedDescriptionIsStable fails if the encoding becomes incompatible with other
// versions.
func TestEncodedDescriptionIsStable(t *testing.T) {
	const golden = "0a03696e631209686f73743a353132321a07636c75737465722203312e3028ac0230013880d095ffbc31"
	b, err := encodeMember(described())
	require.NoError(t, err)
	require.Equal(t, golden, hex.EncodeToString(b))
	m, err := decodeMember("a", b)
	require.NoError(t, err)
	require.Equal(t, described(), m)
}

func TestUnknownFieldsAreSkipped(t *testing.T) {
	b, err := encodeMember(described())
	require.NoError(t, err)
	b = appendString(b, 90, "new")
	b = appendNumber(b, 91, 5)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 92, protowire.Fixed64Type), 6)
	m, err := decodeMember("a", b)
	require.NoError(t, err)
	require.Equal(t, described(), m)
}

func TestMalformedDescriptionsAreRejected(t *testing.T) {
	b, err := encodeMember(described())
	require.NoError(t, err)
	for n := range b {
		if m, err := decodeMember("a", b[:n]); err == nil { // cut between two fields
			require.NotEmpty(t, m.Address)
		}
	}
	_, err = decodeMember("a", nil)
	require.Error(t, err)
	_, err = decodeMember("a", []byte{0xff})
	require.Error(t, err)
	_, err = encodeMember(Member{Address: strings.Repeat("x", 600)})
	require.ErrorIs(t, err, errMetaTooLarge)
}

func FuzzDecodeMember(f *testing.F) {
	b, err := encodeMember(described())
	require.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMember("a", b)
		if err != nil || len(b) > 256 {
			return
		}
		again, err := encodeMember(m)
		require.NoError(t, err)
		back, err := decodeMember("a", again)
		require.NoError(t, err)
		require.Equal(t, m.Started.UnixMilli(), back.Started.UnixMilli())
		m.Started = back.Started
		require.Equal(t, m, back)
	})
}
