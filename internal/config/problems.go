package config

import (
	"fmt"
	"strings"

	"platform/internal/errcode"
)

// problem is an error in the configuration.
type problem struct {
	origin string // platform.toml:12, environment variable X, flag --x
	path   string // "" if it concerns no single key
	what   string
}

func (p problem) String() string {
	words := make([]string, 0, 3)
	for _, word := range []string{p.origin, p.path, p.what} {
		if word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, ": ")
}

// asError turns problems into one RT0002, or nil when there are none.
func asError(problems []problem) error {
	switch len(problems) {
	case 0:
		return nil
	case 1:
		return errcode.New(errcode.RT0002, "configuration: %s", problems[0])
	}
	var lines strings.Builder
	for _, p := range problems {
		lines.WriteString("\n  " + p.String())
	}
	return errcode.New(errcode.RT0002, "configuration: %d problems:%s", len(problems), lines.String())
}

// otherNames maps keys that users expect to the ones that do what they expect; a key with a similar
// spelling would do something else.
var otherNames = map[string]string{
	"admin.auth":  "security.mode",
	"admin.token": "security.admin-token-file",
}

// unknown describes an unknown key and suggests a similar one.
func unknown(path string, list []key) string {
	near, ok := otherNames[path]
	if !ok {
		near = nearest(path, list)
	}
	if near != "" {
		return fmt.Sprintf("unknown key; did you mean %s?", near)
	}
	return "unknown key; --dump-config prints all keys"
}
