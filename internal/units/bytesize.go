package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ByteSize is a number of bytes whose text form carries a unit.
type ByteSize uint64

// Sizes with binary units.
const (
	KiB ByteSize = 1 << 10
	MiB ByteSize = 1 << 20
	GiB ByteSize = 1 << 30
	TiB ByteSize = 1 << 40
)

// String returns the size with its unit.
func (b ByteSize) String() string { return formatByteSize(b) }

// MarshalText prints the size with its unit.
func (b ByteSize) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText accepts every form that ParseByteSize does.
func (b *ByteSize) UnmarshalText(text []byte) error {
	parsed, err := parseByteSize(string(text))
	if err != nil {
		return err
	}
	*b = parsed
	return nil
}

// sizeUnits maps every accepted unit, in lower case, to its size in bytes. Units with an i
// are powers of 1024, others powers of 1000.
var sizeUnits = map[string]ByteSize{
	"": 1, "b": 1, "byte": 1, "bytes": 1,
	"k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9, "t": 1e12, "tb": 1e12,
	"ki": KiB, "kib": KiB, "mi": MiB, "mib": MiB, "gi": GiB, "gib": GiB, "ti": TiB, "tib": TiB,
}

// parseByteSize parses a size such as 32 MiB, 1.5GB, 500MB or a plain number of bytes.
// Fractions of a byte are rounded.
func parseByteSize(text string) (ByteSize, error) {
	number, rest := cutNumber(strings.TrimSpace(text))
	unit, known := sizeUnits[strings.ToLower(strings.TrimSpace(rest))]
	if number == "" || !known {
		return 0, fmt.Errorf("%q is not a size such as 32 MiB, 500MB or 1048576", text)
	}
	if n, err := strconv.ParseUint(number, 10, 64); err == nil {
		if n > math.MaxUint64/uint64(unit) {
			return 0, fmt.Errorf("%q is too large", text)
		}
		return ByteSize(n) * unit, nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size such as 32 MiB, 500MB or 1048576", text)
	}
	bytes := math.Round(f * float64(unit))
	if bytes >= math.MaxUint64 {
		return 0, fmt.Errorf("%q is too large", text)
	}
	return ByteSize(bytes), nil
}

// formatByteSize formats a size in the largest binary unit that represents it exactly with
// one decimal, such as 32.0 MiB, otherwise in bytes (1025 B). ParseByteSize of the result
// returns the same size.
func formatByteSize(b ByteSize) string {
	for _, unit := range []struct {
		bytes ByteSize
		name  string
	}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		whole, rest := b/unit.bytes, b%unit.bytes
		if whole > 0 && rest*10%unit.bytes == 0 {
			return fmt.Sprintf("%d.%d %s", whole, rest*10/unit.bytes, unit.name)
		}
	}
	return strconv.FormatUint(uint64(b), 10) + " B"
}
