// Package statestream transfers the state of a state machine as a stream, in which damage and
// truncation are detected.
package statestream

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"platform/internal/limits"
	"platform/internal/raftgroup/logstore"
	"platform/internal/varint"
)

// The stream of a snapshot is a sequence of frames: length of the payload (4 bytes), kind,
// payload, CRC32C of kind and payload (4 bytes), little endian. First a header, then blocks
// of pairs, last a trailer with the totals, so that damage and truncation are detected.
const (
	frameHeader  = 1 // magic, format, state index, state term
	frameBlock   = 2 // pairs: length of key, key, length of value, value
	frameTrailer = 3 // number of pairs, bytes of all blocks

	magic  = "RGSS"
	format = 1

	// blockBytes is the size at which a block is full; a larger pair gets a block of its
	// own.
	blockBytes = 64 << 10
	// maxFrameBytes bounds what a reader allocates. No row is larger than a command: those that the
	// first release has written are not in chunks.
	maxFrameBytes = limits.Entry
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A View is a consistent view of a state; see raftgroup.Exporter.
type View interface {
	Applied() logstore.Position
	Each(ctx context.Context, emit func(key, value []byte) error) error
}

// Write writes a view into w.
func Write(ctx context.Context, w io.Writer, view View) error {
	out := &frameWriter{w: w}
	at := view.Applied()
	header := append([]byte(magic), format)
	header = binary.AppendUvarint(header, at.Index)
	header = binary.AppendUvarint(header, at.Term)
	if err := out.frame(frameHeader, header); err != nil {
		return err
	}

	var pairs, bytes uint64
	block := make([]byte, 0, blockBytes+4<<10)
	flush := func() error {
		bytes += uint64(len(block))
		err := out.frame(frameBlock, block)
		block = block[:0]
		return err
	}
	err := view.Each(ctx, func(key, value []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		pairs++
		block = varint.AppendBytes(varint.AppendBytes(block, key), value)
		if len(block) < blockBytes {
			return nil
		}
		return flush()
	})
	if err != nil {
		return fmt.Errorf("export state: %w", err)
	}
	if len(block) > 0 {
		if err := flush(); err != nil {
			return err
		}
	}
	trailer := binary.AppendUvarint(binary.AppendUvarint(nil, pairs), bytes)
	return out.frame(frameTrailer, trailer)
}

// frameWriter writes frames, each with one call of Write.
type frameWriter struct {
	w   io.Writer
	buf []byte
}

func (f *frameWriter) frame(kind byte, payload []byte) error {
	f.buf = binary.LittleEndian.AppendUint32(f.buf[:0], uint32(len(payload)))
	f.buf = append(f.buf, kind)
	f.buf = append(f.buf, payload...)
	f.buf = binary.LittleEndian.AppendUint32(f.buf, crc32.Checksum(f.buf[4:], castagnoli))
	if _, err := f.w.Write(f.buf); err != nil {
		return fmt.Errorf("write snapshot stream: %w", err)
	}
	return nil
}

// Read verifies a stream and calls put for its pairs, in ascending order of key. The slices are
// valid during the call only. It returns the position of the
// state. It neither commits nor aborts.
func Read(r io.Reader, put func(key, value []byte) error) (logstore.Position, error) {
	in := &frameReader{r: bufio.NewReaderSize(r, blockBytes)}
	kind, payload, err := in.next()
	if err != nil {
		return logstore.Position{}, err
	}
	at, err := decodeHeader(kind, payload)
	if err != nil {
		return logstore.Position{}, err
	}
	var pairs, bytes uint64
	for {
		kind, payload, err := in.next()
		if err != nil {
			return logstore.Position{}, err
		}
		switch kind {
		case frameBlock:
			n, err := putBlock(payload, put)
			if err != nil {
				return logstore.Position{}, err
			}
			pairs += n
			bytes += uint64(len(payload))
		case frameTrailer:
			t := varint.Reader{Rest: payload}
			if wantPairs, wantBytes := t.Uvarint(), t.Uvarint(); t.Bad || wantPairs != pairs || wantBytes != bytes {
				return logstore.Position{}, fmt.Errorf("snapshot stream has %d pairs, trailer says %d: %w", pairs, wantPairs, logstore.ErrCorrupt)
			}
			return at, nil
		default:
			return logstore.Position{}, fmt.Errorf("frame of kind %d in snapshot stream: %w", kind, logstore.ErrCorrupt)
		}
	}
}

func decodeHeader(kind byte, payload []byte) (logstore.Position, error) {
	n := len(magic)
	if kind != frameHeader || len(payload) <= n || string(payload[:n]) != magic || payload[n] != format {
		return logstore.Position{}, fmt.Errorf("snapshot stream starts without a known header: %w", logstore.ErrCorrupt)
	}
	r := varint.Reader{Rest: payload[n+1:]}
	at := logstore.Position{Index: r.Uvarint(), Term: r.Uvarint()}
	if r.Bad {
		return logstore.Position{}, fmt.Errorf("snapshot header: %w", logstore.ErrCorrupt)
	}
	return at, nil
}

func putBlock(payload []byte, put func(key, value []byte) error) (pairs uint64, err error) {
	r := varint.Reader{Rest: payload}
	for len(r.Rest) > 0 {
		key, value := r.Bytes(), r.Bytes()
		if r.Bad {
			return pairs, fmt.Errorf("snapshot block: %w", logstore.ErrCorrupt)
		}
		if err := put(key, value); err != nil {
			return pairs, fmt.Errorf("import state: %w", err)
		}
		pairs++
	}
	return pairs, nil
}

type frameReader struct {
	r   io.Reader
	buf []byte
}

// next returns the next frame; the payload is valid until the following call.
func (f *frameReader) next() (kind byte, payload []byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return 0, nil, streamEnd(err)
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxFrameBytes {
		return 0, nil, fmt.Errorf("frame of %d bytes in snapshot stream: %w", n, logstore.ErrCorrupt)
	}
	size := int(n) + 1 + 4
	if cap(f.buf) < size {
		f.buf = make([]byte, size)
	}
	f.buf = f.buf[:size]
	if _, err := io.ReadFull(f.r, f.buf); err != nil {
		return 0, nil, streamEnd(err)
	}
	body, sum := f.buf[:size-4], binary.LittleEndian.Uint32(f.buf[size-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return 0, nil, fmt.Errorf("frame in snapshot stream: %w", logstore.ErrCorrupt)
	}
	return body[0], body[1:], nil
}

func streamEnd(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read snapshot stream: %w", err)
}
