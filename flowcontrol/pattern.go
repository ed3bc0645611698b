package flowcontrol

import (
	"errors"
	"fmt"
	"strings"
)

// Any is the part of a pattern that matches every value.
const Any = "*"

// MaxPartBytes is the maximum length of a scope, and of a part of a limit key.
const MaxPartBytes = 36

// Level is the level of the counters that a rule applies to.
type Level uint8

// The levels, in the order of the parts of a pattern.
const (
	LevelScope Level = iota // the scope
	Level1                  // the scope and the first part of the limit key
	Level2                  // the scope and both parts of the limit key
	Levels                  // number of levels
)

// String returns the name as shown in tables.
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

// Pattern selects the counters that a rule applies to. Parts are exact text or Any; absent
// parts are empty, L1 never before L2. The zero Pattern matches nothing.
type Pattern struct{ Scope, L1, L2 string }

// level returns the level of the last part.
func (p Pattern) level() Level {
	switch {
	case p.L2 != "":
		return Level2
	case p.L1 != "":
		return Level1
	}
	return LevelScope
}

// String returns the form that ParsePattern accepts.
func (p Pattern) String() string {
	switch p.level() {
	case Level2:
		return p.Scope + "/" + p.L1 + "/" + p.L2
	case Level1:
		return p.Scope + "/" + p.L1
	}
	return p.Scope
}

// Compare defines the order of patterns in a book: part by part, so that the rules of a
// scope are adjacent.
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

// rank returns the specificity of a pattern. Among the matching patterns of a level, the
// one with the highest rank wins: an exact scope precedes everything after it.
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

// ParsePattern parses scope, scope/l1 or scope/l1/l2, each part exact or "*".
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

// Check validates a pattern that was not returned by ParsePattern.
func (p Pattern) Check() error {
	if parsed, err := ParsePattern(p.String()); err != nil || parsed != p {
		return errors.Join(err, fmt.Errorf("bad pattern %q, %q, %q", p.Scope, p.L1, p.L2))
	}
	return nil
}

// LimitKey subdivides a scope. It has one or two parts; the zero LimitKey is none.
type LimitKey struct{ L1, L2 string }

// String returns the form that ParseLimitKey accepts, empty for none.
func (k LimitKey) String() string {
	if k.L2 == "" {
		return k.L1
	}
	return k.L1 + "/" + k.L2
}

// ParseLimitKey parses l1 or l1/l2.
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

// CheckScope validates the text of a scope.
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
