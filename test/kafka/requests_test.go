package kafka

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// requestCounter is between clients and a broker, and counts the requests by their kind.
type requestCounter struct {
	address string

	mu     sync.Mutex // covers the fields below
	counts map[string]int
	conns  map[net.Conn]bool
}

// countRequests returns the listener of a broker whose clients connect through a counter.
func countRequests(t testing.TB) (*listener, *requestCounter) {
	t.Helper()
	r := &requestCounter{counts: map[string]int{}, conns: map[net.Conn]bool{}}
	return &listener{name: "COUNTED", protocol: "PLAINTEXT", front: func(broker string) string { return r.listen(t, broker) }}, r
}

// listen forwards connections to a broker until the test ends, and returns its own address.
func (r *requestCounter) listen(t testing.TB, broker string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.address = l.Addr().String()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { r.forward(client, broker) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.mu.Lock()
		for c := range r.conns {
			_ = c.Close()
		}
		r.mu.Unlock()
		running.Wait()
	})
	return r.address
}

func (r *requestCounter) forward(client net.Conn, address string) {
	defer r.close(client)
	broker, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer r.close(broker)
	r.mu.Lock()
	r.conns[client], r.conns[broker] = true, true
	r.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, broker)
		_ = client.Close()
	})
	defer back.Wait()
	defer broker.Close()
	for {
		var head [6]byte // the size of the request, then its kind
		if _, err := io.ReadFull(client, head[:]); err != nil {
			return
		}
		r.mu.Lock()
		r.counts[kmsg.NameForKey(int16(binary.BigEndian.Uint16(head[4:])))]++
		r.mu.Unlock()
		if _, err := broker.Write(head[:]); err != nil {
			return
		}
		if _, err := io.CopyN(broker, client, int64(binary.BigEndian.Uint32(head[:4]))-2); err != nil {
			return
		}
	}
}

func (r *requestCounter) close(c net.Conn) {
	_ = c.Close()
	r.mu.Lock()
	delete(r.conns, c)
	r.mu.Unlock()
}

// take returns the counts since the last call.
func (r *requestCounter) take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := r.counts
	r.counts = map[string]int{}
	return counts
}
