// Package ui serves the web UI of the server, a single-page application, from files
// that are embedded in the program.
//
// The sources are in web, the files built from them (make ui) in dist. A program built
// with the tag noui has no UI. DESIGN.md describes the application.
package ui
