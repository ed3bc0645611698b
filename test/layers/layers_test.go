// Package layers checks that packages import only packages of lower layers, as
// ARCHITECTURE.md draws them.
package layers

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "platform/"

// layers parses the block below the heading "Layers": one layer per line, the highest
// first. It returns the line number of each package.
func layers(t *testing.T, document string) map[string]int {
	t.Helper()
	_, section, found := strings.Cut(document, "\n## Layers\n")
	require.True(t, found, "ARCHITECTURE.md must have a section Layers")
	_, block, _ := strings.Cut(section, "```\n")
	block, _, found = strings.Cut(block, "```")
	require.True(t, found, "the section Layers must have a code block")
	layer := map[string]int{}
	for i, line := range strings.Split(strings.TrimSpace(block), "\n") {
		for _, pkg := range strings.Fields(line) {
			require.NotContains(t, layer, pkg, "each package must be in one layer")
			layer[pkg] = i
		}
	}
	return layer
}

// violations returns the imports that are not from a lower layer, and the packages without
// a layer.
func violations(layer map[string]int, imports map[string][]string) (out []string) {
	for pkg, imported := range imports {
		from, known := layer[pkg]
		if !known {
			out = append(out, pkg+" is in no layer")
			continue
		}
		for _, to := range imported {
			if n, known := layer[to]; known && n <= from {
				out = append(out, pkg+" imports "+to)
			}
		}
	}
	return out
}

// hasLayer reports whether a package must be in a layer: commands, tests and deployment
// tools are above all layers.
func hasLayer(pkg string) bool {
	for _, above := range []string{"cmd/", "deploy/", "test/"} {
		if strings.HasPrefix(pkg, above) {
			return false
		}
	}
	return true
}

// imports returns the imports of every package with a layer from within the module,
// without those of tests.
func imports(t *testing.T, root string) map[string][]string {
	t.Helper()
	list := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	list.Dir, list.Stderr = root, os.Stderr
	text, err := list.Output()
	require.NoError(t, err)
	out := map[string][]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(text))); ; {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			require.NoError(t, err)
		}
		name := strings.TrimPrefix(pkg.ImportPath, module)
		if !hasLayer(name) {
			continue
		}
		out[name] = nil
		for _, to := range pkg.Imports {
			if within, ok := strings.CutPrefix(to, module); ok {
				out[name] = append(out[name], within)
			}
		}
	}
}

func TestImportsAreFromLowerLayers(t *testing.T) {
	root := filepath.Join("..", "..")
	document, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	require.NoError(t, err)
	layer, found := layers(t, string(document)), imports(t, root)
	require.Empty(t, violations(layer, found), "move what is shared to a lower layer, or let the importer declare an interface")
	for pkg := range layer {
		require.Contains(t, found, pkg, "a layer contains a package that does not exist")
	}
}

func TestViolationsAreDetected(t *testing.T) {
	layer := layers(t, "\n## Layers\n\n```\ntop\nleft right\nbottom\n```\n")
	require.Empty(t, violations(layer, map[string][]string{"top": {"left", "bottom"}, "left": {"bottom"}}))
	require.Equal(t, []string{"left imports right"}, violations(layer, map[string][]string{"left": {"right"}}))
	require.Equal(t, []string{"bottom imports top"}, violations(layer, map[string][]string{"bottom": {"top"}}))
	require.Equal(t, []string{"unknown is in no layer"}, violations(layer, map[string][]string{"unknown": nil}))
}
