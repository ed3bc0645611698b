package logstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/varint"
)

// Keys of the log database: one byte of kind, the group, then the index or the name, big
// endian so that a group's entries are adjacent and in order.
const (
	keyKindLog    = 'l'
	keyKindStable = 's'

	groupPrefixLen = 1 + 4
	logKeyLen      = groupPrefixLen + 8
)

// entryFormat is the first byte of a stored entry. Readers reject others.
const entryFormat = 1

// maxEntryHeader bounds the encoded header: format, type, and four varints.
const maxEntryHeader = 2 + 4*binary.MaxVarintLen64

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func putGroupPrefix(dst []byte, kind byte, group uint32) {
	dst[0] = kind
	binary.BigEndian.PutUint32(dst[1:], group)
}

func putLogKey(dst []byte, group uint32, index uint64) {
	putGroupPrefix(dst, keyKindLog, group)
	binary.BigEndian.PutUint64(dst[groupPrefixLen:], index)
}

func logKey(group uint32, index uint64) []byte {
	key := make([]byte, logKeyLen)
	putLogKey(key, group, index)
	return key
}

// indexOf returns the index of the entry that a row or chunk belongs to.
func indexOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[groupPrefixLen:]) }

func stableKey(group uint32, name []byte) []byte {
	key := make([]byte, groupPrefixLen, groupPrefixLen+len(name))
	putGroupPrefix(key, keyKindStable, group)
	return append(key, name...)
}

// appendEntryHeader encodes log without its key and data: format, type, term, time of
// append (Unix nanoseconds, 0 if unknown), length of the extensions, length of the data.
func appendEntryHeader(dst []byte, log *raft.Log) []byte {
	dst = append(dst, entryFormat, byte(log.Type))
	dst = binary.AppendUvarint(dst, log.Term)
	dst = binary.AppendVarint(dst, unixNano(log.AppendedAt))
	dst = binary.AppendUvarint(dst, uint64(len(log.Extensions)))
	return binary.AppendUvarint(dst, uint64(len(log.Data)))
}

// entryChecksum also covers the key, so that an entry found under a wrong index or group is
// detected.
func entryChecksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// decodeEntry decodes a stored value into log. Data and extensions alias value.
func decodeEntry(key, value []byte, log *raft.Log) error {
	if len(value) < 4 {
		return fmt.Errorf("entry of %d bytes: %w", len(value), ErrCorrupt)
	}
	body, sum := value[:len(value)-4], binary.LittleEndian.Uint32(value[len(value)-4:])
	if got := entryChecksum(key, body); got != sum {
		return fmt.Errorf("entry checksum %08x, stored %08x: %w", got, sum, ErrCorrupt)
	}
	if len(body) < 2 || body[0] != entryFormat {
		return fmt.Errorf("unknown entry format: %w", ErrCorrupt)
	}
	r := varint.Reader{Rest: body[2:]}
	term, appended := r.Uvarint(), r.Varint()
	extensions, data := r.Uvarint(), r.Uvarint()
	if rest := uint64(len(r.Rest)); r.Bad || extensions > rest || data != rest-extensions { // a sum could overflow
		return fmt.Errorf("entry header: %w", ErrCorrupt)
	}
	*log = raft.Log{
		Index: indexOf(key),
		Term:  term,
		Type:  raft.LogType(body[1]),
		Data:  r.Rest[extensions:],
	}
	if extensions > 0 {
		log.Extensions = r.Rest[:extensions:extensions]
	}
	if appended != 0 {
		log.AppendedAt = time.Unix(0, appended)
	}
	return nil
}

// decodeHeader decodes the start of a stored value, without extensions and data, and
// returns how many bytes these have. The checksum is not verified.
func decodeHeader(key, value []byte, log *raft.Log) (size int, err error) {
	if len(value) < 2 || value[0] != entryFormat {
		return 0, fmt.Errorf("unknown entry format: %w", ErrCorrupt)
	}
	r := varint.Reader{Rest: value[2:]}
	term, appended := r.Uvarint(), r.Varint()
	extensions, data := r.Uvarint(), r.Uvarint()
	if r.Bad || extensions > maxEntry || data > maxEntry {
		return 0, fmt.Errorf("entry header: %w", ErrCorrupt)
	}
	*log = raft.Log{Index: indexOf(key), Term: term, Type: raft.LogType(value[1])}
	if appended != 0 {
		log.AppendedAt = time.Unix(0, appended)
	}
	return int(extensions + data), nil
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// crcOf returns the CRC32C of the concatenated parts.
func crcOf(parts ...[]byte) (sum uint32) {
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}
