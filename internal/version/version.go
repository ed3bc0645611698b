package version

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// Set by the linker.
var version, commit = "dev", ""

// Version returns the version of this build, "dev" for one made without make.
func Version() string { return version }

// Commit returns the commit this build was made from, "" if unknown. The suffix
// "-modified" says that files had been changed.
func Commit() string {
	if commit != "" {
		return commit
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision, modified := "", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			modified = "-modified"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + modified
}

// Platform returns the Go version, operating system and processor.
func Platform() string { return runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH }

// Line describes this build of a program on one line.
func Line(program string) string {
	parts := []string{program, version}
	if c := Commit(); c != "" && !strings.Contains(version, c[:min(7, len(c))]) {
		parts = append(parts, "commit "+c)
	}
	return strings.Join(parts, " ") + " (" + Platform() + ")"
}
