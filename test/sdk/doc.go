// Package sdk holds services written with published SDKs, unmodified, against
// the server, over HTTP, with every feature of the journal.
//
// Each case runs for every language and under every variation of the way the
// server drives an attempt. `go test` runs the default variation; SDK_VARIATIONS
// names others, separated by commas, or all, and SDK_LANGS names the languages to
// run: Go, Ts, Py, Java, Rust. What a language needs is installed and built by
// make sdk-deps; a language without it is skipped by name, except in CI. A feature
// that an SDK does not offer excludes its cases; the table that each variation
// prints at its end (-v) tells which and why.
//
// Read contract/README.md for the services, sdk_test.go for the themes of cases,
// languages_test.go and variations_test.go for the rest of the matrix.
package sdk
