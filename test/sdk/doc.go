// Package sdk holds services written with published SDKs, unmodified, against
// the server, over HTTP, with every feature of the journal.
//
// Each case runs for every language and under every variation of the way the
// server drives an attempt. `go test` runs the default variation; SDK_VARIATIONS
// names others, separated by commas, or all. The TypeScript services need node
// and `npm ci` in services/ts (make ts-deps); without them their cases are
// skipped, except in CI.
package sdk
