package flowcontrol

import (
	"errors"
	"fmt"
	"strings"
)

// Any is the part of a pattern that matches every value.
const Any = "*"

// MaxPartBytes is the longest scope, and the longest part of a limit key.
const MaxPartBytes = 36

// Level says which counters of an invocation a rule is about.
type Level uint8

// The levels, in the order of the parts of a pattern.
const (
	LevelScope Level = iota // the scope
	Level1                  // the scope and the first part of the limit key
	Level2                  // the scope and both parts of the limit key
	Levels                  // how many there are
)

// String is the name that tables show.
func (l Level) String() string {
	switch l {
	case LevelScope:
		return "Scope"
	case Level1:
		return "Level1"
	case Level2:
		return "Level2"
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// Pattern says which counters a rule is about. Parts are exact text or Any; parts that
// the pattern does not have are empty, L1 never before L2. The zero Pattern is none.
type Pattern struct{ Scope, L1, L2 string }

// Level is that of the last part.
func (p Pattern) Level() Level {
	switch {
	case p.L2 != "":
		return Level2
	case p.L1 != "":
		return Level1
	}
	return LevelScope
}

// String is the form that ParsePattern reads.
func (p Pattern) String() string {
	switch p.Level() {
	case Level2:
		return p.Scope + "/" + p.L1 + "/" + p.L2
	case Level1:
		return p.Scope + "/" + p.L1
	}
	return p.Scope
}

// Compare orders patterns as a book is sorted: part by part, so that the rules of a
// scope stand together.
func (p Pattern) Compare(q Pattern) int {
	if c := strings.Compare(p.Scope, q.Scope); c != 0 {
		return c
	}
	if c := strings.Compare(p.L1, q.L1); c != 0 {
		return c
	}
	return strings.Compare(p.L2, q.L2)
}

// The bits of a rank, see rank.
const (
	exactScope = 4
	exactL1    = 2
	exactL2    = 1
)

// rank says how exact a pattern is. Among the patterns of a level that match, that
// with the highest rank wins: an exact scope beats whatever follows it.
func (p Pattern) rank() int {
	rank := 0
	if p.Scope != Any {
		rank |= exactScope
	}
	if p.L1 != "" && p.L1 != Any {
		rank |= exactL1
	}
	if p.L2 != "" && p.L2 != Any {
		rank |= exactL2
	}
	return rank
}

// ParsePattern reads scope, scope/l1 or scope/l1/l2, each part exact or "*".
func ParsePattern(text string) (Pattern, error) {
	parts := strings.Split(text, "/")
	if len(parts) > int(Levels) {
		return Pattern{}, fmt.Errorf("bad pattern '%s': it has %d parts; patterns are scope, scope/l1 or scope/l1/l2", text, len(parts))
	}
	for _, part := range parts {
		if part == Any {
			continue
		}
		if err := checkPart(part); err != nil {
			return Pattern{}, fmt.Errorf("bad pattern '%s': each part is * or exact text, and %w", text, err)
		}
	}
	parts = append(parts, "", "")
	return Pattern{Scope: parts[0], L1: parts[1], L2: parts[2]}, nil
}

// Check says what is wrong with a pattern that ParsePattern did not return, nil if
// nothing is.
func (p Pattern) Check() error {
	if parsed, err := ParsePattern(p.String()); err != nil || parsed != p {
		return errors.Join(err, fmt.Errorf("bad pattern %q, %q, %q", p.Scope, p.L1, p.L2))
	}
	return nil
}

// LimitKey divides a scope further. It has one or two parts; the zero LimitKey is none.
type LimitKey struct{ L1, L2 string }

// String is the form that ParseLimitKey reads, empty for none.
func (k LimitKey) String() string {
	if k.L2 == "" {
		return k.L1
	}
	return k.L1 + "/" + k.L2
}

// ParseLimitKey reads l1 or l1/l2.
func ParseLimitKey(text string) (LimitKey, error) {
	l1, l2, two := strings.Cut(text, "/")
	if strings.Contains(l2, "/") {
		return LimitKey{}, fmt.Errorf("bad limit key '%s': it has more than two parts; limit keys are l1 or l1/l2", text)
	}
	err := checkPart(l1)
	if err == nil && two {
		err = checkPart(l2)
	}
	if err != nil {
		return LimitKey{}, fmt.Errorf("bad limit key '%s': %w", text, err)
	}
	return LimitKey{L1: l1, L2: l2}, nil
}

// CheckScope says what is wrong with the text of a scope, nil if nothing is.
func CheckScope(text string) error {
	if err := checkPart(text); err != nil {
		return fmt.Errorf("bad scope '%s': %w", text, err)
	}
	return nil
}

func checkPart(part string) error {
	switch {
	case part == "":
		return fmt.Errorf("a part is empty: it needs 1 to %d characters", MaxPartBytes)
	case len(part) > MaxPartBytes:
		return fmt.Errorf("'%s' has %d bytes: at most %d are allowed", part, len(part), MaxPartBytes)
	}
	for i := range len(part) {
		if !allowed(part[i]) {
			return fmt.Errorf("'%s' has a character outside A-Z, a-z, 0-9, '_', '.' and '-'", part)
		}
	}
	return nil
}

func allowed(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '-'
}
