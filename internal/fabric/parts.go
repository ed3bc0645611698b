package fabric

import (
	"errors"

	"platform/proto/node"
)

// maxMessageBytes bounds one request or response.
const maxMessageBytes = 256 << 20

var errTooLarge = errors.New("message between nodes is too large")

// parts are large messages of which pieces have come.
type parts map[uint64][]byte

// add takes a piece. whole is the message if that was its last one.
func (p parts) add(f *node.PartitionFrame) (whole []byte, done bool, err error) {
	b := append(p[f.Sequence], f.Piece...)
	switch {
	case len(b) > maxMessageBytes:
		return nil, false, errTooLarge
	case f.More:
		p[f.Sequence] = b
		return nil, false, nil
	}
	delete(p, f.Sequence)
	return b, true, nil
}
