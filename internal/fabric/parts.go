package fabric

import (
	"fmt"

	"platform/internal/budget"
	"platform/internal/limits"
	"platform/proto/node"
)

// Bounds of what is assembled from pieces. A sender of this version keeps well below both
// (see batch.start); those of the first release send everything at a time.
const (
	maxAssembledMessage = 2 * limits.Response
	maxAssembledBytes   = 512 << 20 // of all incomplete messages of a stream
)

// parts are the large messages of a stream of which pieces have come.
type parts struct {
	messages map[uint64][]byte
	bytes    int
	account  *budget.Account     // what the bytes are charged to
	refused  map[uint64]struct{} // messages whose pieces are dropped as they come
}

func newParts(account *budget.Account) *parts {
	return &parts{account: account, messages: make(map[uint64][]byte), refused: make(map[uint64]struct{})}
}

// add takes a piece. whole is the message if that was its last one. An error concerns
// this message only; it is returned once, for the piece that was too much.
func (p *parts) add(f *node.PartitionFrame) (whole []byte, done bool, err error) {
	if _, dropped := p.refused[f.Sequence]; dropped {
		if !f.More {
			delete(p.refused, f.Sequence)
		}
		return nil, false, nil
	}
	b := p.messages[f.Sequence]
	if n := len(b) + len(f.Piece); n > maxAssembledMessage || len(p.messages) > 0 && p.bytes+len(f.Piece) > maxAssembledBytes {
		err := fmt.Errorf("%w: a message between nodes of %d bytes or more, beside %d bytes of others", errTooLarge, n, p.bytes-len(b))
		p.drop(f.Sequence)
		if f.More {
			p.refused[f.Sequence] = struct{}{}
		}
		return nil, false, err
	}
	p.bytes += len(f.Piece)
	p.account.Charge(int64(len(f.Piece)))
	b = append(b, f.Piece...)
	if f.More {
		p.messages[f.Sequence] = b
		return nil, false, nil
	}
	p.bytes -= len(b)
	p.account.Release(int64(len(b)))
	delete(p.messages, f.Sequence)
	return b, true, nil
}

// drop forgets a message of which no more pieces come, or whose pieces are refused.
func (p *parts) drop(sequence uint64) {
	p.account.Release(int64(len(p.messages[sequence])))
	p.bytes -= len(p.messages[sequence])
	delete(p.messages, sequence)
	delete(p.refused, sequence)
}

// close gives back what incomplete messages are charged with.
func (p *parts) close() {
	for sequence := range p.messages {
		p.drop(sequence)
	}
}
