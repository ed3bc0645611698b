package hardstate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"platform/internal/raftgroup/logstore"
)

// The hard-state file starts with a header page, followed by pairs of pages, each for the
// records of 32 groups. A record is written alternately to the two pages of a pair, so that
// one copy is intact if writing the other one is interrupted, and each copy is within a
// sector.
const (
	pageSize       = 4096
	slotSize       = 128
	recordsPerPage = pageSize / slotSize
	version        = 1

	maxGroup       = 1 << 16
	maxIncarnation = 255
)

var magic = [8]byte{'p', 'l', 'h', 'a', 'r', 'd', 's', 't'}

// ErrForeign means that a file or directory belongs to another node or incarnation.
var ErrForeign = errors.New("belongs to another node or incarnation")

// errTruncated means that the hard-state file is shorter than it was. It is an logstore.ErrCorrupt.
var errTruncated = fmt.Errorf("%w: the file was truncated", logstore.ErrCorrupt)

// header is the first page: magic, version, incarnation, checksum of these; number of
// page pairs, checksum up to there; number of marked page pairs, checksum up to there. Those
// that an older server did not write are zero.
type header struct {
	incarnation string
	pairs       int64 // that the file has at least
	// marked is the number of pairs at the beginning of the file in which a slot that was
	// never used has a checksum, so that a page of zeros is damage.
	marked int64
}

func (h header) encode() ([]byte, error) {
	if len(h.incarnation) > maxIncarnation {
		return nil, fmt.Errorf("the incarnation has %d bytes, the limit is %d", len(h.incarnation), maxIncarnation)
	}
	page := make([]byte, pageSize)
	n := copy(page, magic[:])
	page[n] = version
	page[n+1] = byte(len(h.incarnation))
	n += 2 + copy(page[n+2:], h.incarnation)
	e := binary.LittleEndian
	e.PutUint32(page[n:], checksum(page[:n]))
	e.PutUint64(page[n+4:], uint64(h.pairs))
	e.PutUint32(page[n+12:], checksum(page[:n+12]))
	e.PutUint64(page[n+16:], uint64(h.marked))
	e.PutUint32(page[n+24:], checksum(page[:n+24]))
	return page, nil
}

func readHeader(file io.ReaderAt) (h header, err error) {
	page := make([]byte, pageSize)
	if n, err := file.ReadAt(page, 0); n < len(page) {
		return header{}, fmt.Errorf("head: %w: %w", errTruncated, err)
	}
	n := len(magic)
	if [8]byte(page) != magic {
		return header{}, fmt.Errorf("head: %w", logstore.ErrCorrupt)
	}
	if page[n] != version {
		return header{}, fmt.Errorf("%w: version %d, this server reads version %d", ErrNewerFormat, page[n], version)
	}
	size := int(page[n+1])
	n += 2 + size
	e := binary.LittleEndian
	if checksum(page[:n]) != e.Uint32(page[n:]) {
		return header{}, fmt.Errorf("head: %w", logstore.ErrCorrupt)
	}
	h.incarnation = string(page[n-size : n])
	if h.pairs, err = readPairs(page, n+4); err != nil {
		return header{}, err
	}
	if h.marked, err = readPairs(page, n+16); err != nil {
		return header{}, err
	}
	return h, nil
}

// readPairs reads a number of page pairs of the header, which is followed by a checksum.
// It is 0 if an older server has written the header.
func readPairs(page []byte, at int) (int64, error) {
	e := binary.LittleEndian
	pairs, sum := e.Uint64(page[at:]), e.Uint32(page[at+8:])
	switch {
	case pairs == 0 && sum == 0:
		return 0, nil
	case checksum(page[:at+8]) != sum || pairs > maxGroup/recordsPerPage+1:
		return 0, fmt.Errorf("head: %w", logstore.ErrCorrupt)
	}
	return int64(pairs), nil
}

// stored is the record of a group in the file format.
type stored struct {
	seq            uint64 // of the write; the copy with the higher one is current; 0: never used
	replica        uint32
	removing       bool
	term           uint64
	voteTerm       uint64
	candidate      uint64 // hash
	last, lastTerm uint64
	snapshot       uint64
}

func (r *stored) export() Record {
	return Record{
		Replica: r.replica, Removing: r.removing, Term: r.term, VoteTerm: r.voteTerm,
		Last: logstore.Position{Index: r.last, Term: r.lastTerm}, Snapshot: r.snapshot, candidate: r.candidate,
	}
}

// offsetOf returns the offset of a write of a record.
func offsetOf(group uint32, seq uint64) int64 {
	pair, slot := int64(group)/recordsPerPage, int64(group)%recordsPerPage
	return pageSize*(1+2*pair+int64(seq%2)) + slot*slotSize
}

func (r *stored) encode(slot []byte, group uint32) {
	e := binary.LittleEndian
	e.PutUint64(slot, r.seq)
	e.PutUint32(slot[8:], group)
	e.PutUint32(slot[12:], r.replica)
	for i, v := range []uint64{r.term, r.voteTerm, r.candidate, r.last, r.lastTerm, r.snapshot} {
		e.PutUint64(slot[16+8*i:], v)
	}
	if r.removing {
		slot[64] = 1
	}
	e.PutUint32(slot[slotSize-4:], checksum(slot[:slotSize-4]))
}

// isBlank reports whether a slot has only zeros.
func isBlank(slot []byte) bool { return [slotSize]byte(slot) == [slotSize]byte{} }

// decode reads a copy. blank reports that the slot has only zeros.
func (r *stored) decode(slot []byte, group uint32) (blank bool, err error) {
	if isBlank(slot) {
		return true, nil
	}
	e := binary.LittleEndian
	if checksum(slot[:slotSize-4]) != e.Uint32(slot[slotSize-4:]) || e.Uint32(slot[8:]) != group {
		return false, logstore.ErrCorrupt
	}
	*r = stored{
		seq: e.Uint64(slot), replica: e.Uint32(slot[12:]), removing: slot[64] == 1,
		term: e.Uint64(slot[16:]), voteTerm: e.Uint64(slot[24:]), candidate: e.Uint64(slot[32:]),
		last: e.Uint64(slot[40:]), lastTerm: e.Uint64(slot[48:]), snapshot: e.Uint64(slot[56:]),
	}
	return false, nil
}

// readStored reads the newer of both copies; seq is 0 if there is none. One copy may
// be damaged, as by an interrupted write: the other one is then the last durable one. It may
// be the older of two that were synced, which the caller cannot tell; its content is
// nevertheless true, only older. Zeros are damage if unused slots are marked.
func readStored(file io.ReaderAt, group uint32, marked bool) (rec stored, err error) {
	damaged := 0
	for seq := range uint64(2) {
		slot := make([]byte, slotSize)
		if n, err := file.ReadAt(slot, offsetOf(group, seq)); n < len(slot) {
			return rec, err
		}
		var r stored
		blank, err := r.decode(slot, group)
		switch {
		case err != nil || blank && marked:
			damaged++
		case r.seq > rec.seq:
			rec = r
		}
	}
	if damaged == 2 || damaged == 1 && rec.seq == 0 {
		return rec, logstore.ErrCorrupt
	}
	return rec, nil
}

// unusedPairs returns page pairs whose slots are all marked as never used.
func unusedPairs(from, to int64) []byte {
	pages := make([]byte, (to-from)*2*pageSize)
	for group := from * recordsPerPage; group < to*recordsPerPage; group++ {
		for seq := range uint64(2) {
			at := offsetOf(uint32(group), seq) - pageSize*(1+2*from)
			new(stored).encode(pages[at:at+slotSize], uint32(group))
		}
	}
	return pages
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the CRC32C of b.
func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
