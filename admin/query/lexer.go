package query

import (
	"strings"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind uint8

const (
	word   kind = iota // identifier or keyword
	quoted             // identifier in quotes
	str                // 'text'
	blob               // x'00'
	num
	punct
	interval // milliseconds of an interval
)

// token is a token of a query. at is its position in the original text, also for synthetic
// tokens.
type token struct {
	kind kind
	text string
	at   int
}

// is reports whether the token is one of several words or operators; words are in lower case.
func (t token) is(options ...string) bool {
	if t.kind != word && t.kind != punct {
		return false
	}
	for _, o := range options {
		if strings.EqualFold(t.text, o) {
			return true
		}
	}
	return false
}

// name returns the identifier, empty for other tokens.
func (t token) name() string {
	switch t.kind {
	case word:
		return t.text
	case quoted:
		inner := t.text[1 : len(t.text)-1]
		return strings.ReplaceAll(inner, `""`, `"`)
	}
	return ""
}

// literal returns the text of a string.
func (t token) literal() string {
	return strings.ReplaceAll(t.text[1:len(t.text)-1], "''", "'")
}

// lex splits a query into tokens, without comments and spaces.
func lex(text string) ([]token, error) {
	l := lexer{text: text}
	for {
		if err := l.space(); err != nil {
			return nil, err
		}
		if l.at >= len(text) {
			return l.tokens, nil
		}
		if err := l.token(); err != nil {
			return nil, err
		}
	}
}

type lexer struct {
	text   string
	at     int
	tokens []token
}

func (l *lexer) rest() string { return l.text[l.at:] }

func (l *lexer) fail(message string) error {
	return &Error{Message: message, Position: positionAt(l.text, l.at)}
}

// space skips white space and comments.
func (l *lexer) space() error {
	for l.at < len(l.text) {
		rest := l.rest()
		switch {
		case strings.IndexByte(" \t\r\n\f\ufeff", rest[0]) >= 0:
			l.at++
		case strings.HasPrefix(rest, "\u00a0"):
			l.at += len("\u00a0")
		case strings.HasPrefix(rest, "--"):
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				l.at += end
			} else {
				l.at = len(l.text)
			}
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return l.fail("the comment is not closed: */ is missing")
			}
			l.at += end + 4
		default:
			return nil
		}
	}
	return nil
}

func (l *lexer) token() error {
	rest := l.rest()
	c := rest[0]
	switch {
	case (c == 'x' || c == 'X') && strings.HasPrefix(rest[1:], "'"):
		return l.enclosed(blob, 1, '\'', "the bytes are not closed: ' is missing")
	case c == '\'':
		return l.enclosed(str, 0, '\'', "the text is not closed: ' is missing")
	case c == '"':
		return l.enclosed(quoted, 0, '"', `the name is not closed: " is missing`)
	case c == '`':
		return l.enclosed(quoted, 0, '`', "the name is not closed: ` is missing")
	case isDigit(c), c == '.' && len(rest) > 1 && isDigit(rest[1]):
		l.take(num, numberLen(rest))
	case isWordStart(c):
		n := 1
		for n < len(rest) && (isWordStart(rest[n]) || isDigit(rest[n]) || rest[n] == '$') {
			n++
		}
		l.take(word, n)
	case strings.IndexByte("?:@$#", c) >= 0 && !strings.HasPrefix(rest, "::"):
		return l.fail("parameters are not supported, write the value into the query")
	case strings.IndexByte("(),;.+-*/%|&<>=!~[]:", c) >= 0:
		l.take(punct, signLen(rest))
	default:
		r, _ := utf8.DecodeRuneInString(rest)
		return l.fail("the character " + string(r) + " cannot be here")
	}
	return nil
}

func (l *lexer) take(k kind, n int) {
	l.tokens = append(l.tokens, token{k, l.text[l.at : l.at+n], l.at})
	l.at += n
}

// enclosed reads a quoted token, in which a doubled quote stands for one.
func (l *lexer) enclosed(k kind, prefix int, quote byte, open string) error {
	rest := l.rest()
	for n := prefix + 1; n < len(rest); n++ {
		if rest[n] != quote {
			continue
		}
		if n+1 < len(rest) && rest[n+1] == quote {
			n++
			continue
		}
		l.take(k, n+1)
		if k == quoted { // SQLite accepts both kinds of quotes; use one from here on
			t := &l.tokens[len(l.tokens)-1]
			inner := strings.ReplaceAll(t.text[1:len(t.text)-1], string([]byte{quote, quote}), string(quote))
			t.text = quoteName(inner)
		}
		return nil
	}
	return l.fail(open)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWordStart(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// numberLen returns the length of the number at the start of s.
func numberLen(s string) int {
	n := 0
	for n < len(s) {
		c := s[n]
		sign := (c == '+' || c == '-') && n > 0 && (s[n-1] == 'e' || s[n-1] == 'E') && !strings.HasPrefix(s, "0x")
		if !isDigit(c) && c != '.' && !isWordStart(c) && !sign {
			break
		}
		n++
	}
	return n
}

// signs are the operators of several characters, the longest first.
var signs = []string{"->>", "->", "<=", ">=", "<>", "!=", "==", "||", "<<", ">>", "::"}

func signLen(s string) int {
	for _, sign := range signs {
		if strings.HasPrefix(s, sign) {
			return len(sign)
		}
	}
	return 1
}
