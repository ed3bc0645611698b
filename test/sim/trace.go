package sim

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// newRand returns the random source for a purpose, independent of the sources for other
// purposes.
func newRand(seed uint64, purpose string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// trace is the log of events, with hashes to compare runs.
type trace struct {
	mu          sync.Mutex // covers the fields below
	start       time.Time
	lines       []string
	frames      uint64
	logFrames   bool        // each message is a line
	eventHash   hash.Hash64 // of the lines
	messageHash hash.Hash64 // of the lines and of each message between nodes
}

func newTrace() *trace {
	return &trace{start: time.Now(), eventHash: fnv.New64a(), messageHash: fnv.New64a()}
}

// add records an event.
func (t *trace) add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := fmt.Sprintf("%12.6f  ", time.Since(t.start).Seconds()) + fmt.Sprintf(format, args...)
	t.lines = append(t.lines, line)
	_, _ = t.eventHash.Write([]byte(line))
	_, _ = t.messageHash.Write([]byte(line))
}

// frame records a message between nodes.
func (t *trace) frame(w link, size int) {
	var b [24]byte
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frames++
	binary.LittleEndian.PutUint64(b[:], uint64(time.Since(t.start)))
	binary.LittleEndian.PutUint64(b[8:], uint64(size))
	_, _ = t.messageHash.Write(b[:])
	_, _ = t.messageHash.Write([]byte(w.from + ">" + w.to))
	if t.logFrames {
		t.lines = append(t.lines, fmt.Sprintf("%14.9f  %s>%s %d bytes", time.Since(t.start).Seconds(), w.from, w.to, size))
	}
}

func (t *trace) hashes() (events, messages uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.eventHash.Sum64(), t.messageHash.Sum64()
}

func (t *trace) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}

func (t *trace) count() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.frames
}

// elapsed is the time since the start.
func (t *trace) elapsed() time.Duration { return time.Since(t.start) }
