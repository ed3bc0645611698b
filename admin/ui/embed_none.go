//go:build noui

package ui

import "io/fs"

// dist is nil: the program was built without the UI.
var dist fs.FS
