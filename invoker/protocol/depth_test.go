package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/errcode"
	"platform/partition/journal"
)

func TestAwaitsNestedTooDeeply(t *testing.T) {
	suspension := func(levels int) []byte {
		b := []byte{0x0a, 0x01, 0x01} // awaits completion 1
		for range levels {            // each a combination of one
			b = append(protowire.AppendVarint([]byte{0x22}, uint64(len(b))), b...)
		}
		return b
	}
	_, err := ParseSuspension(V7, suspension(journal.MaxDepth))
	require.NoError(t, err)
	_, err = ParseSuspension(V7, suspension(journal.MaxDepth+1))
	code, _ := errcode.Of(err)
	require.Equal(t, errcode.RT0025, code)
}
