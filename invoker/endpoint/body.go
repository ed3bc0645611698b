package endpoint

import (
	"io"
	"sync"
)

// body is a request body that is written without waiting for its reader, and
// without copying.
type body struct {
	mu      sync.Mutex // guards the fields below
	more    sync.Cond
	chunks  [][]byte
	next    int  // chunks before it have been read
	ended   bool // no more will be written
	aborted bool // nobody reads any more
}

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
	b.more.Signal()
}

func (b *body) finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.more.Signal()
}

func (b *body) abort() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.aborted, b.chunks = true, nil
	b.more.Broadcast()
}

// Read is for the transport, and gives it as much as there is. It never returns
// data and the end together: a peer may lose bytes that it reads with the end.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.next == len(b.chunks) && !b.ended && !b.aborted {
		b.more.Wait()
	}
	switch {
	case b.aborted:
		return 0, io.ErrClosedPipe
	case b.next == len(b.chunks):
		return 0, io.EOF
	}
	n := 0
	for n < len(p) && b.next < len(b.chunks) {
		chunk := b.chunks[b.next]
		k := copy(p[n:], chunk)
		n += k
		if b.chunks[b.next] = chunk[k:]; k == len(chunk) {
			b.chunks[b.next] = nil
			b.next++
		}
	}
	if b.next == len(b.chunks) {
		b.chunks, b.next = b.chunks[:0], 0
	}
	return n, nil
}

// Close is for the transport, which calls it when it needs no more of the body.
func (b *body) Close() error {
	b.abort()
	return nil
}
