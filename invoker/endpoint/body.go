package endpoint

import (
	"io"
	"sync"
)

// body is a request body that is written without waiting for its reader, and
// without copying. Until it is settled it keeps what has been read, so that the
// request can be tried again on another connection.
type body struct {
	mu      sync.Mutex // guards the fields below
	more    sync.Cond
	chunks  [][]byte
	next    int         // chunks before it have been read in the current try
	offset  int         // bytes of chunk next that have been
	reader  *reader     // of the current try, nil if none is under way
	settled bool        // there will be no other try
	ended   bool        // no more will be written
	aborted bool        // nobody will read any more
	sent    func(n int) // told of bytes that are not held any more; may be nil
}

// reader is one try to send the body.
type reader struct{ b *body }

func (b *body) init() { b.more.L = &b.mu }

func (b *body) write(chunks [][]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended || b.aborted {
		return
	}
	for _, p := range chunks {
		if len(p) > 0 {
			b.chunks = append(b.chunks, p)
		}
	}
	b.more.Broadcast()
}

func (b *body) finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.more.Broadcast()
}

func (b *body) abort() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop()
}

func (b *body) drop() {
	b.aborted, b.chunks = true, nil
	b.more.Broadcast()
}

// try returns a reader from the beginning on, and ends the one before it.
func (b *body) try() (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.settled || b.aborted {
		return nil, io.ErrClosedPipe
	}
	b.reader = &reader{b}
	b.next, b.offset = 0, 0
	b.more.Broadcast()
	return b.reader, nil
}

// settle says that the peer has taken the request, so that what has been read is
// not needed again.
func (b *body) settle() {
	b.mu.Lock()
	n := 0
	if b.settled = true; b.reader == nil {
		b.drop()
	} else {
		n = b.forget()
	}
	b.mu.Unlock()
	b.tell(n)
}

// forget gives back what has been read, and says how much.
func (b *body) forget() (n int) {
	for i := min(b.next, len(b.chunks)) - 1; i >= 0 && b.chunks[i] != nil; i-- {
		n += len(b.chunks[i])
		b.chunks[i] = nil
	}
	if b.next >= len(b.chunks) {
		b.chunks, b.next = b.chunks[:0], 0
	}
	return n
}

func (b *body) tell(n int) {
	if n > 0 && b.sent != nil {
		b.sent(n)
	}
}

// Read is for the transport, and gives it as much as there is. It never returns
// data and the end together: a peer may lose bytes that it reads with the end.
func (r *reader) Read(p []byte) (int, error) {
	n, freed, err := r.read(p)
	r.b.tell(freed)
	return n, err
}

func (r *reader) read(p []byte) (n, freed int, err error) {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.reader == r && b.next == len(b.chunks) && !b.ended && !b.aborted {
		b.more.Wait()
	}
	switch {
	case b.reader != r || b.aborted:
		return 0, 0, io.ErrClosedPipe
	case b.next == len(b.chunks):
		return 0, 0, io.EOF
	}
	for n < len(p) && b.next < len(b.chunks) {
		chunk := b.chunks[b.next][b.offset:]
		k := copy(p[n:], chunk)
		n += k
		if b.offset += k; k == len(chunk) {
			b.next, b.offset = b.next+1, 0
		}
	}
	if b.settled {
		freed = b.forget()
	}
	return n, freed, nil
}

// Close is for the transport, which calls it when it needs no more of the body.
func (r *reader) Close() error {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reader != r {
		return nil
	}
	b.reader = nil
	if b.settled {
		b.drop()
	}
	b.more.Broadcast()
	return nil
}
