package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

var builds struct {
	sync.Mutex // covers dir and done, and serializes builds
	dir        string
	done       map[string]string
}

// Build compiles a command of this module once per process and returns the path
// of the binary. Cleanup removes it.
func Build(pkg string) (string, error) { return buildOnce(pkg, "") }

// BuildWithFailpoints is Build with the failpoints of internal/failpoint, which the
// environment variable FAILPOINTS activates.
func BuildWithFailpoints(pkg string) (string, error) { return buildOnce(pkg, "failpoints") }

func buildOnce(pkg, tags string) (string, error) {
	builds.Lock()
	defer builds.Unlock()
	key := pkg + tags
	if bin, ok := builds.done[key]; ok {
		return bin, nil
	}
	dir, err := makeDir()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, strings.ReplaceAll(path.Clean(key), "/", "_"))
	if err := goBuild(bin, "", "-tags", tags, pkg); err != nil {
		return "", err
	}
	builds.done[key] = bin
	return bin, nil
}

// buildDir is where binaries are written.
func buildDir() (string, error) {
	builds.Lock()
	defer builds.Unlock()
	return makeDir()
}

// makeDir creates the directory unless it exists; the caller holds the lock.
func makeDir() (string, error) {
	if builds.dir == "" {
		dir, err := os.MkdirTemp("", "platform-test-bin-")
		if err != nil {
			return "", err
		}
		builds.dir, builds.done = dir, map[string]string{}
	}
	return builds.dir, nil
}

// Cleanup removes the binaries that Build wrote. Call it at the end of TestMain.
func Cleanup() {
	builds.Lock()
	defer builds.Unlock()
	if builds.dir != "" {
		_ = os.RemoveAll(builds.dir)
		builds.dir, builds.done = "", nil
	}
}

// goBuild runs go build in dir, "" for the current directory.
func goBuild(bin, dir string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build", "-o", bin}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
