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
	bin, err := newBinaryPath()
	if err != nil {
		return "", err
	}
	source := filepath.Join(filepath.Dir(bin), "source")
	if err := unpackCommit(commit, source); err != nil {
		return "", err
	}
	return bin, goBuild(bin, source, pkg)
}

// FetchCommit downloads the modules that BuildCommit needs, some in versions that this commit
// does not use. It must be called where there is a network: a sandbox has none. The error is
// ErrNoCommit if the commit is missing.
func FetchCommit(commit, pkg string) error {
	dir, err := os.MkdirTemp("", "platform-test-source-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "source")
	if err := unpackCommit(commit, source); err != nil {
		return err
	}
	cmd := exec.Command("go", "list", "-deps", pkg)
	cmd.Dir = source
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("download the modules of commit %s: %w\n%s", commit, err, &stderr)
	}
	return nil
}

// unpackCommit writes the files of a commit to a new directory.
func unpackCommit(commit, dir string) error {
	module, err := goTool("list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	if exec.Command("git", "-C", module, "cat-file", "-e", commit+"^{commit}").Run() != nil {
		return fmt.Errorf("%w: %s", ErrNoCommit, commit)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	archive, err := exec.Command("git", "-C", module, "archive", commit).Output()
	if err != nil {
		return fmt.Errorf("archive commit %s: %w", commit, err)
	}
	unpack := exec.Command("tar", "-x", "-C", dir)
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack commit %s: %w\n%s", commit, err, out)
	}
	return nil
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
