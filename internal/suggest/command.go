package suggest

import "strings"

// Word returns an argument of a command that a message suggests, in single quotes if a shell would not
// take it as it is.
func Word(argument string) string {
	plain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("_-./:,@%+", r)
	}
	if argument != "" && !strings.ContainsFunc(argument, func(r rune) bool { return !plain(r) }) {
		return argument
	}
	return "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
}
