package raftgroup

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/limits"
	"platform/internal/raftgroup/logstore"
)

// pairs is a state in memory.
type pairs struct {
	at   Position
	keys []string
	vals []string
}

func (p *pairs) Applied() Position { return p.at }
func (p *pairs) Close() error      { return nil }

func (p *pairs) Each(_ context.Context, emit func(key, value []byte) error) error {
	for i := range p.keys {
		if err := emit([]byte(p.keys[i]), []byte(p.vals[i])); err != nil {
			return err
		}
	}
	return nil
}

func (p *pairs) Put(k, v []byte) error {
	p.keys, p.vals = append(p.keys, string(k)), append(p.vals, string(v))
	return nil
}
func (p *pairs) Commit(context.Context, Position) error { return nil }
func (p *pairs) Abort() error                           { return nil }

func manyPairs(n int) *pairs {
	p := &pairs{at: Position{Index: 1000, Term: 7}}
	for i := range n {
		p.keys = append(p.keys, fmt.Sprintf("key %06d", i))
		p.vals = append(p.vals, fmt.Sprintf("%0*d", i%300, i))
	}
	return p
}

func TestStreamCarriesTheState(t *testing.T) {
	big := &pairs{at: Position{Index: 2, Term: 1}, keys: []string{"k"}, vals: []string{string(make([]byte, 3*blockBytes))}}
	for name, state := range map[string]*pairs{"empty": {}, "blocks": manyPairs(5000), "large pair": big} {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			require.NoError(t, writeState(t.Context(), &buf, state))
			got := &pairs{}
			at, err := readState(&buf, got)
			require.NoError(t, err)
			require.Equal(t, state.at, at)
			require.Equal(t, state.keys, got.keys)
			require.Equal(t, state.vals, got.vals)
		})
	}
}

func TestDamagedStreamIsRefused(t *testing.T) {
	var buf bytes.Buffer
	require.NoError(t, writeState(t.Context(), &buf, manyPairs(20)))
	good := buf.Bytes()
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		_, err := readState(bytes.NewReader(bad), &pairs{})
		require.Error(t, err, "byte %d", i)
		_, err = readState(bytes.NewReader(good[:i]), &pairs{})
		require.Error(t, err, "cut at %d", i)
	}
}

func TestStreamWithAMissingBlockIsRefused(t *testing.T) {
	var whole bytes.Buffer
	require.NoError(t, writeState(t.Context(), &whole, manyPairs(3000)))
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
	_, err := readState(&cut, &pairs{})
	require.ErrorIs(t, err, logstore.ErrCorrupt)
}

// TestStreamBytes pins the format on the wire.
func TestStreamBytes(t *testing.T) {
	var buf bytes.Buffer
	state := &pairs{at: Position{Index: 300, Term: 2}, keys: []string{"a", "b"}, vals: []string{"1", ""}}
	require.NoError(t, writeState(t.Context(), &buf, state))
	require.Equal(t, "08000000"+"01"+"52475353"+"01"+"ac0202"+"7fd6a4f9"+
		"07000000"+"02"+"01610131"+"016200"+"47a51ecb"+
		"02000000"+"03"+"0207"+"0c37c579", hex.EncodeToString(buf.Bytes()))
}

// TestSnapshotRecordBytes pins the format on disk.
func TestSnapshotRecordBytes(t *testing.T) {
	rec := snapshotRecord{
		Index: 300, Term: 4, State: Position{Index: 299, Term: 3}, ConfigIndex: 1,
		Config: raft.Configuration{Servers: []raft.Server{
			{ID: "n1", Address: "a:1"}, {Suffrage: raft.Nonvoter, ID: "n2", Address: "b:2"},
		}},
	}
	b := rec.encode()
	require.Equal(t, "01ac0204ab02030102"+"00026e3103613a31"+"01026e3203623a32", hex.EncodeToString(b))
	back, err := decodeSnapshotRecord(b)
	require.NoError(t, err)
	require.Equal(t, rec, back)
	for n := range b {
		_, err := decodeSnapshotRecord(b[:n])
		require.ErrorIs(t, err, logstore.ErrCorrupt)
	}
}

func TestExportStopsWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := writeState(ctx, &bytes.Buffer{}, manyPairs(10))
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

func (r *oneRow) Put(_, v []byte) error {
	r.size = len(v)
	return nil
}

// The rows that the first release has written are not in chunks, however large they are.
func TestStreamCarriesTheLargestRow(t *testing.T) {
	r, w := io.Pipe()
	go func() { w.CloseWithError(writeState(t.Context(), w, &oneRow{size: limits.StoredMessage})) }()
	got := &oneRow{}
	_, err := readState(r, got)
	require.NoError(t, r.CloseWithError(err))
	require.NoError(t, err)
	require.Equal(t, limits.StoredMessage, got.size)
}
