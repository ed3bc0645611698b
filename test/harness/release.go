package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNoCommit means that a commit is not in the history of this checkout.
var ErrNoCommit = errors.New("commit is not in the history of this checkout")

// BuildLinked compiles a command of this module with linker flags and returns the path
// of the binary.
func BuildLinked(pkg, ldflags string) (string, error) {
	bin, err := newBinaryPath()
	if err != nil {
		return "", err
	}
	return bin, goBuild(bin, "", "-ldflags", ldflags, pkg)
}

// BuildCommit compiles a command of this module at a commit and returns the path of the
// binary. The error is ErrNoCommit if the commit is missing, as in a shallow clone.
func BuildCommit(commit, pkg string) (string, error) {
	module, err := goTool("list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return "", err
	}
	if exec.Command("git", "-C", module, "cat-file", "-e", commit+"^{commit}").Run() != nil {
		return "", fmt.Errorf("%w: %s", ErrNoCommit, commit)
	}
	bin, err := newBinaryPath()
	if err != nil {
		return "", err
	}
	source := filepath.Join(filepath.Dir(bin), "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		return "", err
	}
	archive, err := exec.Command("git", "-C", module, "archive", commit).Output()
	if err != nil {
		return "", fmt.Errorf("archive commit %s: %w", commit, err)
	}
	unpack := exec.Command("tar", "-x", "-C", source)
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		return "", fmt.Errorf("unpack commit %s: %w\n%s", commit, err, out)
	}
	return bin, goBuild(bin, source, pkg)
}

// newBinaryPath returns a path for a binary in a new directory.
func newBinaryPath() (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(dir, "build-"); err != nil {
		return "", err
	}
	return filepath.Join(dir, "bin"), nil
}
