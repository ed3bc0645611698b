package errcode

import (
	"slices"
	"strings"
)

// Code identifies one kind of error for users, such as META0003. Codes are only
// added.
type Code string

// Entry explains a code.
type Entry struct {
	Code       Code
	Title      string // a few words
	Meaning    string // what happened and why
	Remedy     string // what to do about it
	HTTPStatus int    // HTTP status of responses with the code
}

// Lookup returns the entry of a code; letter case does not matter.
func Lookup(code Code) (Entry, bool) {
	wanted := Code(strings.ToUpper(string(code)))
	for _, entries := range [][]Entry{metaEntries, runtimeEntries} {
		if at := slices.IndexFunc(entries, func(e Entry) bool { return e.Code == wanted }); at >= 0 {
			return entries[at], true
		}
	}
	return Entry{}, false
}

// All returns all entries: the META codes, then the RT codes, each in
// ascending order.
func All() []Entry { return slices.Concat(metaEntries, runtimeEntries) }
