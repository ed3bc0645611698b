package statestream

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/limits"
	"platform/internal/raftgroup/logstore"
)

// pairs is a state in memory.
type pairs struct {
	at   logstore.Position
	keys []string
	vals []string
}

func (p *pairs) Applied() logstore.Position { return p.at }

func (p *pairs) Each(_ context.Context, emit func(key, value []byte) error) error {
	for i := range p.keys {
		if err := emit([]byte(p.keys[i]), []byte(p.vals[i])); err != nil {
			return err
		}
	}
	return nil
}

func (p *pairs) put(k, v []byte) error {
	p.keys, p.vals = append(p.keys, string(k)), append(p.vals, string(v))
	return nil
}

func manyPairs(n int) *pairs {
	p := &pairs{at: logstore.Position{Index: 1000, Term: 7}}
	for i := range n {
		p.keys = append(p.keys, fmt.Sprintf("key %06d", i))
		p.vals = append(p.vals, fmt.Sprintf("%0*d", i%300, i))
	}
	return p
}

func TestStreamCarriesTheState(t *testing.T) {
	big := &pairs{at: logstore.Position{Index: 2, Term: 1}, keys: []string{"k"}, vals: []string{string(make([]byte, 3*blockBytes))}}
	for name, state := range map[string]*pairs{"empty": {}, "blocks": manyPairs(5000), "large pair": big} {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			require.NoError(t, Write(t.Context(), &buf, state))
			got := &pairs{}
			at, err := Read(&buf, got.put)
			require.NoError(t, err)
			require.Equal(t, state.at, at)
			require.Equal(t, state.keys, got.keys)
			require.Equal(t, state.vals, got.vals)
		})
	}
}

func TestDamagedStreamIsRefused(t *testing.T) {
	var buf bytes.Buffer
	require.NoError(t, Write(t.Context(), &buf, manyPairs(20)))
	good := buf.Bytes()
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		_, err := Read(bytes.NewReader(bad), new(pairs).put)
		require.Error(t, err, "byte %d", i)
		_, err = Read(bytes.NewReader(good[:i]), new(pairs).put)
		require.Error(t, err, "cut at %d", i)
	}
}

func TestStreamWithAMissingBlockIsRefused(t *testing.T) {
	var whole bytes.Buffer
	require.NoError(t, Write(t.Context(), &whole, manyPairs(3000)))
	in := &frameReader{r: bytes.NewReader(whole.Bytes())}
	var cut bytes.Buffer
	out := &frameWriter{w: &cut}
	for n := 0; ; n++ {
		kind, payload, err := in.next()
		if err != nil {
			break
		}
		if n != 2 {
			require.NoError(t, out.frame(kind, payload))
		}
	}
	_, err := Read(&cut, new(pairs).put)
	require.ErrorIs(t, err, logstore.ErrCorrupt)
}

// TestStreamBytes pins the format on the wire.
func TestStreamBytes(t *testing.T) {
	var buf bytes.Buffer
	state := &pairs{at: logstore.Position{Index: 300, Term: 2}, keys: []string{"a", "b"}, vals: []string{"1", ""}}
	require.NoError(t, Write(t.Context(), &buf, state))
	require.Equal(t, "08000000"+"01"+"52475353"+"01"+"ac0202"+"7fd6a4f9"+
		"07000000"+"02"+"01610131"+"016200"+"47a51ecb"+
		"02000000"+"03"+"0207"+"0c37c579", hex.EncodeToString(buf.Bytes()))
}

func TestExportStopsWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Write(ctx, &bytes.Buffer{}, manyPairs(10))
	require.True(t, errors.Is(err, context.Canceled))
}

// oneRow is a state with a small row and one of the given size.
type oneRow struct {
	pairs
	size int
}

func (r *oneRow) Each(_ context.Context, emit func(key, value []byte) error) error {
	return errors.Join(emit([]byte("a"), make([]byte, blockBytes/2)), emit([]byte("b"), make([]byte, r.size)))
}

func (r *oneRow) put(_, v []byte) error {
	r.size = len(v)
	return nil
}

// The rows that the first release has written are not in chunks, however large they are.
func TestStreamCarriesTheLargestRow(t *testing.T) {
	r, w := io.Pipe()
	go func() { w.CloseWithError(Write(t.Context(), w, &oneRow{size: limits.StoredMessage})) }()
	got := &oneRow{}
	_, err := Read(r, got.put)
	require.NoError(t, r.CloseWithError(err))
	require.NoError(t, err)
	require.Equal(t, limits.StoredMessage, got.size)
}

// FuzzSnapshotStream: a stream of well-formed frames with any content, or of any
// bytes at all, is refused, or carries a state that stays the same when it is sent on.
func FuzzSnapshotStream(f *testing.F) {
	var whole bytes.Buffer
	require.NoError(f, Write(f.Context(), &whole, manyPairs(3)))
	f.Add(whole.Bytes(), false)
	f.Add([]byte("\x01\x07RGSS\x01\x05\x01\x02\x06\x01k\x01v\x00\x00\x03\x02\x02\x06"), true)
	f.Add([]byte("\x01\x07RGSS\x01\x05\x01\x02\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x03\x02\x00\x00"), true)
	f.Fuzz(func(t *testing.T, data []byte, frames bool) {
		stream := bytes.NewBuffer(data)
		if frames {
			stream = framed(t, data)
		}
		got := &pairs{}
		at, err := Read(stream, got.put)
		if err != nil {
			return
		}
		got.at = at
		var sent bytes.Buffer
		require.NoError(t, Write(t.Context(), &sent, got))
		again := &pairs{at: at}
		_, err = Read(&sent, again.put)
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

// framed makes frames of parts of data, each after its kind and length.
func framed(t *testing.T, data []byte) *bytes.Buffer {
	var b bytes.Buffer
	w := &frameWriter{w: &b}
	for len(data) >= 2 {
		n := min(int(data[1]), len(data)-2)
		require.NoError(t, w.frame(data[0], data[2:2+n]))
		data = data[2+n:]
	}
	return &b
}
