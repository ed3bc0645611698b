package codec_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Batches are bounded by estimates, so an estimate must not be below the size.
func TestFailuresAreNotEstimatedTooLow(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for name, metadata := range map[string][]journal.Metadata{
		"none": nil, "large value": {{Key: "k", Value: long}}, "large key": {{Key: long}}, "many pairs": make([]journal.Metadata, 1000),
	} {
		t.Run(name, func(t *testing.T) {
			result := journal.Result{Failure: &journal.Failure{Code: 500, Message: "failed", Metadata: metadata}}
			for _, m := range []machine.Message{
				&machine.Complete{Result: result},
				&machine.Signal{ID: journal.NotificationID{Signal: true, Name: "done"}, Result: &result},
			} {
				b, err := codec.AppendMessage(nil, m)
				require.NoError(t, err)
				require.LessOrEqual(t, len(b), codec.MessageSize(m))
				deliver := &machine.Deliver{FirstSeq: 1, Messages: []machine.Message{m, m, m}}
				b, err = codec.EncodeCommand(feature.Level4, deliver)
				require.NoError(t, err)
				require.LessOrEqual(t, len(b), codec.CommandSize(deliver))
			}
		})
	}
}
