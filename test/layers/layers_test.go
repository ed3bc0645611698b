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

// layers reads the block below the heading "Layers": one layer per line, the highest
// first. The number of a package's line is its layer.
func layers(t *testing.T, document string) map[string]int {
	t.Helper()
	_, section, found := strings.Cut(document, "\n## Layers\n")
	require.True(t, found, "ARCHITECTURE.md has a section Layers")
	_, block, _ := strings.Cut(section, "```\n")
	block, _, found = strings.Cut(block, "```")
	require.True(t, found, "the section Layers has a block")
	layer := map[string]int{}
	for i, line := range strings.Split(strings.TrimSpace(block), "\n") {
		for _, pkg := range strings.Fields(line) {
			require.NotContains(t, layer, pkg, "each package is in one layer")
			layer[pkg] = i
		}
	}
	return layer
}

// violations returns the imports that do not lead to a lower layer. A package that
// is in no layer is a violation too.
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

// checked reports whether the layers name a package: commands, tests and what is used
// for deployments only are above all of them.
func checked(pkg string) bool {
	for _, above := range []string{"cmd/", "deploy/", "test/"} {
		if strings.HasPrefix(pkg, above) {
			return false
		}
	}
	return true
}

// imports lists the imports within the module of every package that is checked,
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
		if !checked(name) {
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

func TestImportsLeadToLowerLayers(t *testing.T) {
	root := filepath.Join("..", "..")
	document, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	require.NoError(t, err)
	layer, found := layers(t, string(document)), imports(t, root)
	require.Empty(t, violations(layer, found), "move what is shared to a lower layer, or let the importer declare an interface")
	for pkg := range layer {
		require.Contains(t, found, pkg, "a layer names a package that does not exist")
	}
}

func TestViolationsAreFound(t *testing.T) {
	layer := layers(t, "\n## Layers\n\n```\nroof\nleft right\nground\n```\n")
	require.Empty(t, violations(layer, map[string][]string{"roof": {"left", "ground"}, "left": {"ground"}}))
	require.Equal(t, []string{"left imports right"}, violations(layer, map[string][]string{"left": {"right"}}))
	require.Equal(t, []string{"ground imports roof"}, violations(layer, map[string][]string{"ground": {"roof"}}))
	require.Equal(t, []string{"cellar is in no layer"}, violations(layer, map[string][]string{"cellar": nil}))
}
