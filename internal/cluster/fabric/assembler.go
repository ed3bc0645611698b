package fabric

import (
	"fmt"

	"platform/internal/budget"
	"platform/internal/limits"
	"platform/proto/node"
)

// Limits for messages assembled from pieces. Senders stay well below both (see
// batch.startLarge), except those of the first release, which send all messages
// concurrently.
const (
	maxAssembledMessage = 2 * limits.Response
	maxIncompleteBytes  = 512 << 20 // total of a stream
)

// assembler reassembles the large messages of a stream from their pieces.
type assembler struct {
	messages map[uint64][]byte
	bytes    int
	account  *budget.Account     // charged for bytes
	rejected map[uint64]struct{} // too large; remaining pieces are dropped
}

func newAssembler(account *budget.Account) *assembler {
	return &assembler{account: account, messages: make(map[uint64][]byte), rejected: make(map[uint64]struct{})}
}

// add adds a piece. If it is the last one of its message, done is true and whole is the
// message. An error concerns this message only and is returned once, for the piece that
// exceeded a limit.
func (p *assembler) add(f *node.PartitionFrame) (whole []byte, done bool, err error) {
	if _, dropped := p.rejected[f.Sequence]; dropped {
		if !f.More {
			delete(p.rejected, f.Sequence)
		}
		return nil, false, nil
	}
	b := p.messages[f.Sequence]
	if n := len(b) + len(f.Piece); n > maxAssembledMessage || len(p.messages) > 0 && p.bytes+len(f.Piece) > maxIncompleteBytes {
		err := fmt.Errorf("%w: message of at least %d bytes, with %d bytes of other incomplete messages", errTooLarge, n, p.bytes-len(b))
		p.drop(f.Sequence)
		if f.More {
			p.rejected[f.Sequence] = struct{}{}
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

// drop discards the pieces of a message.
func (p *assembler) drop(sequence uint64) {
	p.account.Release(int64(len(p.messages[sequence])))
	p.bytes -= len(p.messages[sequence])
	delete(p.messages, sequence)
	delete(p.rejected, sequence)
}

// close discards all incomplete messages and releases their charges.
func (p *assembler) close() {
	for sequence := range p.messages {
		p.drop(sequence)
	}
}
