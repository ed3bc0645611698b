package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoCommit says that a commit is not in the history of this checkout.
var ErrNoCommit = errors.New("commit is not in the history of this checkout")

// BuildLinked compiles a command of this module with flags for the linker and returns
// the path of the binary.
func BuildLinked(pkg, ldflags string) (string, error) {
	bin, err := newBinary()
	if err != nil {
		return "", err
	}
	return bin, build(bin, "", "-ldflags", ldflags, pkg)
}

// BuildCommit compiles a command of this module as it was at a commit and returns the
// path of the binary. The error is ErrNoCommit when the checkout is too shallow.
func BuildCommit(commit, pkg string) (string, error) {
	module, err := goTool("list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return "", err
	}
	if exec.Command("git", "-C", module, "cat-file", "-e", commit+"^{commit}").Run() != nil {
		return "", fmt.Errorf("%w: %s", ErrNoCommit, commit)
	}
	bin, err := newBinary()
	if err != nil {
		return "", err
	}
	source := filepath.Join(filepath.Dir(bin), "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		return "", err
	}
	archive, err := exec.Command("git", "-C", module, "archive", commit).Output()
	if err != nil {
		return "", fmt.Errorf("read the source of commit %s: %w", commit, err)
	}
	unpack := exec.Command("tar", "-x", "-C", source)
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		return "", fmt.Errorf("unpack commit %s: %w\n%s", commit, err, out)
	}
	return bin, build(bin, source, pkg)
}

// newBinary is a path for a binary in a directory of its own.
func newBinary() (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(dir, "build-"); err != nil {
		return "", err
	}
	return filepath.Join(dir, "bin"), nil
}

// build runs go build in a directory, "" for the current one.
func build(bin, dir string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build", "-o", bin}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
