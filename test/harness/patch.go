package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Patch replaces text in a file of the standard library, or adds a file, for one build. Tests that
// need a defect in the server use failpoints.
type Patch struct {
	File string // path below the module, or below GOROOT if Std is set
	Std  bool
	Old  string // must occur exactly once; "" adds the file
	New  string
}

// BuildPatched compiles a command of this module with patches and returns the path
// of the binary.
func BuildPatched(pkg string, patches ...Patch) (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	dir, err = os.MkdirTemp(dir, "patched-")
	if err != nil {
		return "", err
	}
	overlay := map[string]string{}
	for i, p := range patches {
		original, err := p.original()
		if err != nil {
			return "", err
		}
		source := original
		if earlier, ok := overlay[original]; ok {
			source = earlier
		}
		text, err := p.apply(source)
		if err != nil {
			return "", err
		}
		overlay[original] = filepath.Join(dir, strconv.Itoa(i)+".go")
		if err := os.WriteFile(overlay[original], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return "", err
	}
	list, bin := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "bin")
	if err := os.WriteFile(list, raw, 0o600); err != nil {
		return "", err
	}
	return bin, goBuild(bin, "", "-overlay", list, pkg)
}

// Check returns an error if the patch does not apply to the source.
func (p Patch) Check() error {
	original, err := p.original()
	if err == nil {
		_, err = p.apply(original)
	}
	return err
}

// original returns the path of the file to patch.
func (p Patch) original() (string, error) {
	if p.Std {
		root, err := goTool("env", "GOROOT")
		return filepath.Join(root, "src", p.File), err
	}
	module, err := goTool("list", "-m", "-f", "{{.Dir}}")
	return filepath.Join(module, p.File), err
}

// apply returns the patched text.
func (p Patch) apply(source string) (string, error) {
	switch {
	case p.Old == "":
		return p.New, nil
	case !p.Std:
		return "", fmt.Errorf("patch %s: the source of the server is not patched; use a failpoint", p.File)
	}
	raw, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(raw), p.Old); n != 1 {
		return "", fmt.Errorf("patch %s: %q occurs %d times, want 1; update the patch to the current source", p.File, p.Old, n)
	}
	return strings.Replace(string(raw), p.Old, p.New, 1), nil
}

func goTool(args ...string) (string, error) {
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
