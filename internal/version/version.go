package version

import (
	"runtime"
	"runtime/debug"
)

// version is set by the linker.
var version = "dev"

// Version returns the version of this build, "dev" for one made without make.
func Version() string { return version }

// Commit returns the commit this build was made from, "" when unknown.
func Commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit, modified := "", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			commit = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			modified = "-modified"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + modified
}

// Platform returns the Go version, operating system and processor.
func Platform() string { return runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH }
