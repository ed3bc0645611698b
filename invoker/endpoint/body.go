package endpoint

import (
	"io"
	"sync"
)

// body is a request body that is written without waiting for its reader and without
// copying. Until it is settled it keeps what has been read, so that the request can be sent
// again on another connection.
type body struct {
	mu      sync.Mutex // covers the fields below
	more    sync.Cond
	chunks  [][]byte
	next    int         // chunks that were read in the current try
	offset  int         // bytes of the next chunk that were read
	reader  *reader     // of the current try; nil: none
	settled bool        // there are no further tries
	once    bool        // there is only one try, and what was read is copied and held until settle
	copied  int         // bytes that were read in that case
	ended   bool        // the body is complete
	aborted bool        // it is not read any further
	sent    func(n int) // called with the number of released bytes; may be nil
}

// reader reads the body for one try.
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

// try returns a reader of the whole body, and ends the previous one.
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

// readOnce sets whether the body is read only once, into memory that holds it until settle: then
// what has been read is dropped, but not reported as sent before.
func (b *body) readOnce(once bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.once = once
}

// settle records that the peer has accepted the request, so what has been read is not
// needed again.
func (b *body) settle() {
	b.mu.Lock()
	n := 0
	if b.settled = true; b.reader == nil {
		b.drop()
	} else {
		n = b.release() + b.copied
		b.copied = 0
	}
	b.mu.Unlock()
	b.notify(n)
}

// release drops the chunks that have been read, and returns their size.
func (b *body) release() (n int) {
	for i := min(b.next, len(b.chunks)) - 1; i >= 0 && b.chunks[i] != nil; i-- {
		n += len(b.chunks[i])
		b.chunks[i] = nil
	}
	if b.next >= len(b.chunks) {
		b.chunks, b.next = b.chunks[:0], 0
	}
	return n
}

func (b *body) notify(n int) {
	if n > 0 && b.sent != nil {
		b.sent(n)
	}
}

// Read is called by the transport and returns as much as is available. It never returns
// data together with the end: a peer may lose bytes that it reads with the end.
func (r *reader) Read(p []byte) (int, error) {
	n, freed, err := r.read(p)
	r.b.notify(freed)
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
	switch {
	case b.settled:
		freed = b.release()
	case b.once:
		b.copied += b.release()
	}
	return n, freed, nil
}

// Close is called by the transport when it does not need the rest of the body.
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
