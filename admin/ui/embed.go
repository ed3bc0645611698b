//go:build !noui

package ui

import (
	"embed"
	"io/fs"
)

//go:embed dist
var embedded embed.FS

var dist = must(fs.Sub(embedded, "dist"))

func must(f fs.FS, err error) fs.FS {
	if err != nil {
		panic(err)
	}
	return f
}
