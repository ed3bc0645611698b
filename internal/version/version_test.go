package version

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLine(t *testing.T) {
	defer func(v, c string) { version, commit = v, c }(version, commit)
	build := " (" + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + ")"
	for _, c := range []struct{ version, commit, want string }{
		{"1.2.0", "0123456789abcdef", "server 1.2.0 commit 0123456789abcdef" + build},
		{"1.2.0-3-g0123456", "0123456789abcdef", "server 1.2.0-3-g0123456" + build},
	} {
		version, commit = c.version, c.commit
		require.Equal(t, c.want, Line("server"))
	}
}
