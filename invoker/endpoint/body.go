package endpoint

import (
	"io"
	"sync"
)

// body is a request body that is written without waiting for its reader and without
// copying. Until it is settled it keeps what has been read, so that the request can be sent
// again on another connection.
type body struct {
	mu      sync.Mutex // guards the fields below
	more    sync.Cond
	chunks  [][]byte
	next    int         // chunks that were read in the current try
	offset  int         // bytes of the next chunk that were read
	reader  *reader     // of the current try; nil: none
	stream  *h2Stream   // that takes what is written in the current try; nil: a goroutine reads it
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
	if b.ended || b.aborted {
		b.mu.Unlock()
		return
	}
	for _, p := range chunks {
		if len(p) > 0 {
			b.chunks = append(b.chunks, p)
		}
	}
	b.changed()
}

func (b *body) finish() {
	b.mu.Lock()
	b.ended = true
	b.changed()
}

// changed releases the mutex and tells the reader that there is more to read.
func (b *body) changed() {
	s := b.stream
	b.more.Broadcast()
	b.mu.Unlock()
	if s != nil {
		s.send()
	}
}

func (b *body) abort() {
	b.mu.Lock()
	b.drop()
	s := b.stream
	b.mu.Unlock()
	if s != nil {
		s.abort()
	}
}

func (b *body) drop() {
	b.aborted, b.chunks = true, nil
	b.more.Broadcast()
}

// try returns a reader of the whole body, and ends the previous one.
func (b *body) try() (io.ReadCloser, error) {
	r, err := b.tryOn(nil)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// tryOn is try for a stream that takes the body itself, see reader.appendTo.
func (b *body) tryOn(s *h2Stream) (*reader, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.settled || b.aborted {
		return nil, io.ErrClosedPipe
	}
	b.reader, b.stream = &reader{b}, s
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
	if err := r.over(); err != nil {
		return 0, 0, err
	}
	for n < len(p) && b.next < len(b.chunks) {
		n += copy(p[n:], b.take(len(p)-n))
	}
	return n, b.freed(), nil
}

// appendTo appends at most limit bytes of what is available to p, without waiting. It also returns
// how many bytes were released, and whether there are more. The error io.EOF means that there will be
// none.
func (r *reader) appendTo(p []byte, limit int) (_ []byte, freed int, more bool, err error) {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reader != r {
		return p, 0, false, io.ErrClosedPipe
	}
	for limit > 0 && b.next < len(b.chunks) {
		chunk := b.take(limit)
		limit -= len(chunk)
		p = append(p, chunk...)
	}
	return p, b.freed(), b.next < len(b.chunks), r.over()
}

// over returns why nothing can be read any more, if there is nothing to read.
func (r *reader) over() error {
	b := r.b
	switch {
	case b.reader != r || b.aborted:
		return io.ErrClosedPipe
	case b.next == len(b.chunks) && b.ended:
		return io.EOF
	}
	return nil
}

// take takes at most limit bytes of the next chunk.
func (b *body) take(limit int) []byte {
	chunk := b.chunks[b.next][b.offset:]
	if len(chunk) > limit {
		b.offset += limit
		return chunk[:limit]
	}
	b.next, b.offset = b.next+1, 0
	return chunk
}

// freed releases what was read, as far as it is not needed again, and returns its size.
func (b *body) freed() (n int) {
	switch {
	case b.settled:
		n = b.release()
	case b.once:
		b.copied += b.release()
	}
	return n
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
