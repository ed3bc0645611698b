// Package sdk tests the server with services that use the unmodified published SDKs, over
// HTTP, with every feature of the journal.
//
// Each case runs for every language and in every variation of how the server invokes a
// service. `go test` runs the default variation; SDK_VARIATIONS names others,
// comma-separated, or all, and SDK_LANGS names the languages to run: Go, Ts, Py, Java, Rust.
// `make sdk-deps` installs and builds their dependencies; a language without them is
// skipped, except in CI. Cases that need a feature that an SDK does not have are excluded;
// the table that each variation prints at its end (-v) lists them with the reason.
//
// Read contract/README.md for the services, sdk_test.go for the themes of cases,
// languages_test.go and variations_test.go for the rest of the matrix.
package sdk
