package listing

import "strings"

const (
	// maxMessage bounds a normalised message.
	maxMessage = 200
	// MessagePrefix is how many bytes of a message are read.
	MessagePrefix = 2048
	// maxQuoted bounds a quoted value.
	maxQuoted = 512
)

// normalise returns a failure message without what differs between failures of the same
// cause: numbers, IDs, hexadecimal digits, quoted values and key, the key of the object, become
// "?", and white space one space. The result has at most 200 bytes; more reports that the message
// continues after them.
func normalise(message, key string) (normalised string, more bool) {
	n := normaliser{in: message[:min(len(message), MessagePrefix)], key: key}
	for n.at < len(n.in) && n.out.Len() < maxMessage {
		n.step()
	}
	out := strings.TrimSpace(n.out.String())
	more = len(out) > maxMessage || strings.TrimSpace(message[n.at:]) != ""
	return strings.ToValidUTF8(out[:min(len(out), maxMessage)], ""), more
}

// normaliser reads a message once from its start to its end.
type normaliser struct {
	in, key string
	at      int
	out     strings.Builder
	// glue is the single separator after a placeholder, which is dropped if another
	// placeholder follows: an address or a UUID becomes one placeholder.
	glue   string
	masked bool // the output ends with a placeholder, before glue
}

func (n *normaliser) step() {
	c := n.in[n.at]
	switch {
	case n.keyHere():
		n.at += len(n.key)
		n.mask()
	case c == '"' || c == '`' || c == '\'' && (n.at == 0 || !wordByte(n.in[n.at-1])):
		n.quoted(c)
	case wordByte(c):
		n.word()
	case c <= ' ':
		for n.at < len(n.in) && n.in[n.at] <= ' ' {
			n.at++
		}
		n.write(" ")
	case strings.IndexByte(".:-/,", c) >= 0 && n.masked && n.glue == "":
		n.glue = n.in[n.at : n.at+1]
		n.at++
	default:
		n.write(n.in[n.at : n.at+1])
		n.at++
	}
}

// write appends text that is not a placeholder.
func (n *normaliser) write(text string) {
	n.out.WriteString(n.glue)
	n.out.WriteString(text)
	n.glue, n.masked = "", false
}

// mask appends a placeholder.
func (n *normaliser) mask() {
	if !n.masked {
		n.out.WriteByte('?')
	}
	n.glue, n.masked = "", true
}

// keyHere reports whether the key stands here as a whole word.
func (n *normaliser) keyHere() bool {
	if n.key == "" || !strings.HasPrefix(n.in[n.at:], n.key) || n.at > 0 && wordByte(n.in[n.at-1]) && wordByte(n.key[0]) {
		return false
	}
	end := n.at + len(n.key)
	return end == len(n.in) || !wordByte(n.in[end]) || !wordByte(n.in[end-1])
}

// quoted replaces a quoted value, if the quote is closed on the same line.
func (n *normaliser) quoted(quote byte) {
	rest := n.in[n.at+1:]
	end := strings.IndexByte(rest[:min(len(rest), maxQuoted)], quote)
	if end < 0 || strings.IndexByte(rest[:end], '\n') >= 0 {
		n.write(string(quote))
		n.at++
		return
	}
	n.write(string(quote))
	n.mask()
	n.write(string(quote))
	n.at += end + 2
}

// word replaces a word that is an ID, and the numbers in another one.
func (n *normaliser) word() {
	end := n.at
	for end < len(n.in) && wordByte(n.in[end]) {
		end++
	}
	word := n.in[n.at:end]
	n.at = end
	if isID(word) || n.glue == "-" && len(word) >= 4 && hexadecimal(word) {
		n.mask()
		return
	}
	for len(word) > 0 {
		i := 0
		for i < len(word) && digit(word[i]) == digit(word[0]) {
			i++
		}
		if digit(word[0]) {
			n.mask()
		} else {
			n.write(word[:i])
		}
		word = word[i:]
	}
}

// isID reports whether a word is likely to be an ID: hexadecimal, or letters and digits mixed
// more than once.
func isID(word string) bool {
	digits, changes := 0, 0
	for i := range len(word) {
		if digit(word[i]) {
			digits++
		}
		if i > 0 && digit(word[i]) != digit(word[i-1]) {
			changes++
		}
	}
	return digits > 0 && (len(word) >= 4 && hexadecimal(word) || len(word) >= 8 && changes >= 3)
}

func hexadecimal(word string) bool {
	for i := range len(word) {
		if c := word[i]; !digit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return true
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// wordByte reports whether c belongs to a word; bytes of other alphabets do.
func wordByte(c byte) bool {
	return digit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c >= 0x80
}
