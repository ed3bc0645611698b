package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/partition/journal"
)

func TestFailureMetadataIsSentFromVersion6On(t *testing.T) {
	failure := &journal.Failure{Code: 409, Message: "no", Metadata: []journal.Metadata{{Key: "a", Value: "b"}, {Key: "c"}}}
	bare := &journal.Failure{Code: 409, Message: "no"}
	with := journal.NewCompletion(300, journal.Result{Failure: failure})
	without := journal.NewCompletion(300, journal.Result{Failure: bare})
	value := journal.NewCompletion(300, journal.Result{Value: []byte("1a030a0161")})
	before := string(with)
	require.Equal(t, without, ForVersion(V5, with))
	require.Equal(t, before, string(with))
	require.Equal(t, with, ForVersion(V6, with))
	require.Equal(t, with, ForVersion(V7, with))
	for _, payload := range [][]byte{nil, without, value, {0xff}, {0x32, 0x05, 1}, {8}} {
		require.Equal(t, payload, ForVersion(V5, payload))
	}
}
