package codec

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/partition/machine"
)

// large draws long texts and lists, which estimates must not leave out.
type large struct{ drawn }

func (l large) text() string {
	return strings.Repeat("x", rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 2000)).Draw(l.t, "text"))
}

func (l large) length() int {
	return rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 20)).Draw(l.t, "length")
}

// Batches, queues and lanes are bounded by estimates. A value that is larger than its
// estimate would make them exceed the largest log command.
func TestNoValueIsLargerThanItsEstimate(t *testing.T) {
	size := map[bool]func(any) int{
		true:  func(v any) int { return CommandSize(v.(machine.Command)) },
		false: func(v any) int { return MessageSize(v.(machine.Message)) },
	}
	for _, k := range kinds {
		command := strings.HasPrefix(k.name, "command-")
		if !command && !strings.HasPrefix(k.name, "message-") {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v := k.blank()
				fill(reflect.ValueOf(v).Elem(), large{drawn{t: t}}, 0)
				encoded, err := k.encode(v)
				if err != nil {
					return // not a valid value
				}
				require.LessOrEqual(t, len(encoded), size[command](v))
			})
		})
	}
}
