package protocol

import (
	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/errcode"
	"platform/internal/limits"
	"platform/partition/journal"
)

// checkPairs returns an error with code RT0003 for a message with too many headers or metadata, before
// it is decoded.
func checkPairs(t Type, payload []byte) error {
	var field, inner protowire.Number
	switch t {
	case journal.Call:
		field = 4
	case journal.OneWayCall:
		field = 5
	case journal.Output, ProposeRunCompletion:
		field, inner = 15, 3
	case journal.SendSignal:
		field, inner = 6, 3
	case journal.CompletePromise, journal.CompleteAwakeable:
		field, inner = 3, 3
	default:
		return nil
	}
	n, err := countFields(payload, field, inner)
	switch {
	case err != nil:
		return undecodable(t, err)
	case n > limits.Pairs:
		return errcode.New(errcode.RT0003, "message %s has %d headers or metadata of a failure, at most %d", Name(t), n, limits.Pairs)
	}
	return nil
}

// countFields returns the number of fields of bytes with a number or, unless inner is 0, of those with the
// number inner in them. Malformed fields are an error: the decoder, which is less strict, could read others
// after them.
func countFields(payload []byte, field, inner protowire.Number) (n int, err error) {
	for len(payload) > 0 {
		num, typ, size := protowire.ConsumeTag(payload)
		if size < 0 {
			return 0, protowire.ParseError(size)
		}
		value := payload[size:]
		if size = protowire.ConsumeFieldValue(num, typ, value); size < 0 {
			return 0, protowire.ParseError(size)
		}
		payload = value[size:]
		switch {
		case num != field || typ != protowire.BytesType:
		case inner == 0:
			n++
		default:
			content, _ := protowire.ConsumeBytes(value)
			more, err := countFields(content, inner, 0)
			if err != nil {
				return 0, err
			}
			n += more
		}
	}
	return n, nil
}
