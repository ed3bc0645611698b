package query

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	sqlite3 "modernc.org/sqlite/lib"
)

// rowWriter writes rows as JSON objects.
type rowWriter struct {
	types []Type
	names [][]byte // as keys, with the colon
	// bigText writes u64 as text, for clients with smaller exact integers.
	bigText bool
}

func (w *rowWriter) columns(names []string, types []Type) {
	w.types = types
	for _, name := range names {
		w.names = append(w.names, append(appendString(nil, []byte(name)), ':'))
	}
}

// append appends the current row, without NULL values.
func (w *rowWriter) append(b []byte, r Row) []byte {
	b = append(b, '{')
	begin := len(b)
	for i, t := range w.types {
		kind := r.s.kind(i)
		if kind == sqlite3.SQLITE_NULL {
			continue
		}
		if len(b) > begin {
			b = append(b, ',')
		}
		b = append(b, w.names[i]...)
		switch kind {
		case sqlite3.SQLITE_INTEGER:
			b = w.integer(b, t, r.s.int(i))
		case sqlite3.SQLITE_FLOAT:
			b = appendFloat(b, r.s.float(i))
		case sqlite3.SQLITE_BLOB:
			b = append(hex.AppendEncode(append(b, '"'), r.s.bytes(i)), '"')
		default:
			b = w.text(b, t, r.s.bytes(i))
		}
	}
	return append(b, '}')
}

func (w *rowWriter) integer(b []byte, t Type, n int64) []byte {
	switch t {
	case Bool:
		return strconv.AppendBool(b, n != 0)
	case Duration:
		return append(append(append(b, '"'), isoDuration(n)...), '"')
	case U64:
		if w.bigText {
			return append(strconv.AppendUint(append(b, '"'), uint64(n), 10), '"')
		}
		return strconv.AppendUint(b, uint64(n), 10)
	}
	return strconv.AppendInt(b, n, 10)
}

func (w *rowWriter) text(b []byte, t Type, v []byte) []byte {
	if (t == U32List || t == TextList) && json.Valid(v) {
		return append(b, v...)
	}
	return appendString(b, v)
}

func appendFloat(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64)
}

const hexDigits = "0123456789abcdef"

// appendString appends text as JSON. Invalid UTF-8 becomes the replacement character.
func appendString(b, v []byte) []byte {
	b = append(b, '"')
	for len(v) > 0 {
		n := 0
		for n < len(v) && v[n] >= ' ' && v[n] != '"' && v[n] != '\\' && v[n] < utf8.RuneSelf {
			n++
		}
		b, v = append(b, v[:n]...), v[n:]
		if len(v) == 0 {
			break
		}
		switch c := v[0]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			r, size := utf8.DecodeRune(v)
			b, v = utf8.AppendRune(b, r), v[size:]
			continue
		}
		v = v[1:]
	}
	return append(b, '"')
}
