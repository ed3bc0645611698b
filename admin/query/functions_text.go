package query

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxValue limits the size of a value in bytes, and so the time of a function that SQLite cannot
// interrupt.
const maxValue = 4 << 20

// maxWildcards limits a pattern of LIKE or GLOB in bytes.
const maxWildcards = 1000

var (
	errWildcards = fmt.Errorf("the pattern of LIKE or GLOB is longer than %d bytes", maxWildcards)
	errEscape    = errors.New("ESCAPE takes a single character")
	errValueSize = fmt.Errorf("the result would be larger than %d MiB", maxValue>>20)
)

// textFunctions replace the SQLite functions of the same name and arity whose time is
// proportional to the product of the lengths of their arguments and which cannot be interrupted.
// The driver accepts each name only once, while SQLite ignores case, so variants with more
// arguments are registered in capitals.
var textFunctions = map[string]function{
	"instr":   {2, instr},
	"replace": {3, replaceAll},
	"trim":    {2, trimmer(true, true)},
	"ltrim":   {2, trimmer(true, false)},
	"rtrim":   {2, trimmer(false, true)},
	"glob": {2, func(s *session, args []driver.Value) (driver.Value, error) {
		p, err := parseGlob(textOf(args[0]))
		return s.matchWildcards(p, args, err)
	}},
	"like": {2, func(s *session, args []driver.Value) (driver.Value, error) {
		p, err := parseLike(textOf(args[0]), utf8.RuneError)
		return s.matchWildcards(p, args, err)
	}},
	"LIKE": {3, func(s *session, args []driver.Value) (driver.Value, error) {
		escape := textOf(args[2])
		if utf8.RuneCountInString(escape) != 1 {
			return nil, errEscape
		}
		r, _ := utf8.DecodeRuneInString(escape)
		p, err := parseLike(textOf(args[0]), r)
		return s.matchWildcards(p, args, err)
	}},
}

// textOf converts a value to text like a SQLite cast.
func textOf(v driver.Value) string {
	f, ok := v.(float64)
	if !ok {
		return stringOf(v)
	}
	text := strconv.FormatFloat(f, 'g', 15, 64)
	if strings.ContainsAny(text, ".IN") {
		return text
	}
	digits, exponent, has := strings.Cut(text, "e")
	if has {
		exponent = "e" + exponent
	}
	return digits + ".0" + exponent
}

// instr returns the position of one text in another in characters, or of one blob in another in
// bytes, from 1; 0 if it does not occur.
func instr(_ *session, args []driver.Value) (driver.Value, error) {
	_, isBlob := args[0].([]byte)
	_, ofBlob := args[1].([]byte)
	text, part := textOf(args[0]), textOf(args[1])
	at := strings.Index(text, part)
	if at < 0 || isBlob && ofBlob {
		return int64(at + 1), nil
	}
	return int64(utf8.RuneCountInString(text[:at]) + 1), nil
}

func replaceAll(_ *session, args []driver.Value) (driver.Value, error) {
	text, from, to := textOf(args[0]), textOf(args[1]), textOf(args[2])
	if from == "" {
		return text, nil
	}
	if n := strings.Count(text, from); len(text)+n*(len(to)-len(from)) > maxValue {
		return nil, errValueSize
	}
	return strings.ReplaceAll(text, from, to), nil
}

// trimmer returns a function that removes the characters of the second argument from the ends of
// the first.
func trimmer(left, right bool) func(*session, []driver.Value) (driver.Value, error) {
	return func(_ *session, args []driver.Value) (driver.Value, error) {
		text, set := textOf(args[0]), map[rune]bool{}
		for _, r := range textOf(args[1]) {
			set[r] = true
		}
		in := func(r rune) bool { return set[r] }
		if left {
			text = strings.TrimLeftFunc(text, in)
		}
		if right {
			text = strings.TrimRightFunc(text, in)
		}
		return text, nil
	}
}

// wildcard is one element of a pattern.
type wildcard struct {
	many bool            // any number of characters
	fits func(rune) bool // one character; nil for many
}

// ilikeMark is the prefix of a pattern of ILIKE, which is rewritten to LIKE.
const ilikeMark = "\x02"

// parseLike parses a pattern of LIKE, or of ILIKE, which ignores the case of ASCII letters. The
// escape character is utf8.RuneError if there is none.
func parseLike(pattern string, escape rune) ([]wildcard, error) {
	pattern, anyCase := strings.CutPrefix(pattern, ilikeMark)
	letter := func(want rune) func(rune) bool { return func(r rune) bool { return r == want } }
	if anyCase {
		letter = sameLetter
	}
	if len(pattern) > maxWildcards {
		return nil, errWildcards
	}
	var p []wildcard
	escaped := false
	for _, r := range pattern {
		switch {
		case escaped:
			p, escaped = append(p, wildcard{fits: letter(r)}), false
		case r == escape && escape != utf8.RuneError:
			escaped = true
		case r == '%':
			p = append(p, wildcard{many: true})
		case r == '_':
			p = append(p, wildcard{fits: anyRune})
		default:
			p = append(p, wildcard{fits: letter(r)})
		}
	}
	if escaped { // as in SQLite, such a pattern matches nothing
		p = append(p, wildcard{fits: func(rune) bool { return false }})
	}
	return p, nil
}

func anyRune(rune) bool { return true }

func sameLetter(want rune) func(rune) bool {
	want = lowerASCII(want)
	return func(r rune) bool { return lowerASCII(r) == want }
}

func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// parseGlob parses a pattern of GLOB: *, ? and sets such as [a-z] or [^abc].
func parseGlob(pattern string) ([]wildcard, error) {
	if len(pattern) > maxWildcards {
		return nil, errWildcards
	}
	var p []wildcard
	for runes := []rune(pattern); len(runes) > 0; {
		r := runes[0]
		runes = runes[1:]
		switch r {
		case '*':
			p = append(p, wildcard{many: true})
		case '?':
			p = append(p, wildcard{fits: anyRune})
		case '[':
			var set func(rune) bool
			set, runes = parseSet(runes)
			p = append(p, wildcard{fits: set})
		default:
			p = append(p, wildcard{fits: func(is rune) bool { return is == r }})
		}
	}
	return p, nil
}

// parseSet parses a set of characters including its closing bracket. A set without one matches
// nothing.
func parseSet(runes []rune) (fits func(rune) bool, rest []rune) {
	inverted := len(runes) > 0 && runes[0] == '^'
	if inverted {
		runes = runes[1:]
	}
	type span struct{ from, to rune }
	var spans []span
	for i := 0; i < len(runes); i++ {
		switch {
		case runes[i] == ']' && i > 0: // literal as the first character
			return func(r rune) bool {
				for _, s := range spans {
					if s.from <= r && r <= s.to {
						return !inverted
					}
				}
				return inverted
			}, runes[i+1:]
		case runes[i] == '-' && i > 0 && i+1 < len(runes) && runes[i+1] != ']':
			spans = append(spans, span{runes[i-1], runes[i+1]})
			i++
		default:
			spans = append(spans, span{runes[i], runes[i]})
		}
	}
	return func(rune) bool { return false }, nil
}

// checkEvery is the number of iterations between checks of the deadline.
const checkEvery = 1 << 16

// matchWildcards reports whether the second argument as a whole matches the pattern of the first.
// As in SQLite, blobs match nothing. On a mismatch it backtracks to the last wildcard and lets it
// match one character more.
func (s *session) matchWildcards(p []wildcard, args []driver.Value, err error) (driver.Value, error) {
	if err != nil {
		return nil, err
	}
	for _, arg := range args[:2] {
		if _, isBlob := arg.([]byte); isBlob {
			return boolean(false), nil
		}
	}
	text := textOf(args[1])
	at, elem := 0, 0        // next character and element
	back, backElem := -1, 0 // backtracking position; back < 0: none
	for steps := 1; ; steps++ {
		if steps%checkEvery == 0 && s.ctx.Err() != nil {
			return nil, s.ctx.Err()
		}
		switch {
		case elem < len(p) && p[elem].many:
			elem++
			back, backElem = at, elem
			continue
		case at == len(text) && elem == len(p):
			return boolean(true), nil
		case at < len(text) && elem < len(p):
			if r, size := utf8.DecodeRuneInString(text[at:]); p[elem].fits(r) {
				at, elem = at+size, elem+1
				continue
			}
		case elem < len(p): // the text has ended
			return boolean(false), nil
		}
		if back < 0 {
			return boolean(false), nil
		}
		_, size := utf8.DecodeRuneInString(text[back:])
		back += size
		at, elem = back, backElem
	}
}

// endingReader reads text until the query has to end.
type endingReader struct {
	s     *session
	text  string
	reads int
}

// ReadRune implements io.RuneReader.
func (r *endingReader) ReadRune() (rune, int, error) {
	r.reads++
	if r.text == "" || r.reads%1024 == 0 && r.s.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRuneInString(r.text)
	r.text = r.text[size:]
	return c, size, nil
}
