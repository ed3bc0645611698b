package config

import "fmt"

// inert are keys that are accepted, so that configurations written for a later version load, but
// that have no effect yet.
var inert = []string{
	"networking.connect-timeout",
	"networking.http2-keep-alive-interval",
	"networking.http2-keep-alive-timeout",
}

// warnInert warns about settings without effect, such as a signing key that is not used.
func (l *loader) warnInert() {
	standard := index(keys(Default()))
	for _, path := range inert {
		if !l.isSet(path) {
			continue
		}
		was, _ := textOf(standard[path].value)
		if now, _ := textOf(l.byPath[path].value); now != was {
			l.warnings = append(l.warnings, fmt.Sprintf("%s is set (%s) but has no effect in this version", path, l.origins[path]))
		}
	}
}
