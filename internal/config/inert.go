package config

import "fmt"

// inert are keys that are known, so that configurations written for a cluster or a later version
// load, but that have no effect yet.
var inert = []string{
	"networking.connect-timeout",
	"networking.http2-keep-alive-interval",
	"networking.http2-keep-alive-timeout",
}

// warnInert says which settings have no effect: an operator who set a proxy or a
// signing key must not believe that they are used.
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
