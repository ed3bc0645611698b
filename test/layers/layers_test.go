// Package layers checks that packages import only packages of lower layers, as
// ARCHITECTURE.md draws them.
package layers

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "platform/"

// linesOf parses the first code block of a section: its words, and the line of each, the highest
// line first.
func linesOf(t *testing.T, section string) map[string]int {
	t.Helper()
	_, block, _ := strings.Cut(section, "```\n")
	block, _, found := strings.Cut(block, "```")
	require.True(t, found, "the section must have a code block")
	lines := map[string]int{}
	for i, line := range strings.Split(strings.TrimSpace(block), "\n") {
		for _, word := range strings.Fields(line) {
			require.NotContains(t, lines, word, "each name must be in one line")
			lines[word] = i
		}
	}
	return lines
}

// section returns the text below a heading of a document.
func section(t *testing.T, document, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(document, "\n## "+heading+"\n")
	require.True(t, found, "ARCHITECTURE.md must have a section %s", heading)
	text, _, _ = strings.Cut(text, "\n## ")
	return text
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

const root = "../.."

func architecture(t *testing.T) string {
	t.Helper()
	document, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	require.NoError(t, err)
	return string(document)
}

func TestImportsAreFromLowerLayers(t *testing.T) {
	layer, found := linesOf(t, section(t, architecture(t), "Layers")), imports(t, root)
	require.Empty(t, violations(layer, found), "move what is shared to a lower layer, or let the importer declare an interface")
	for pkg := range layer {
		require.Contains(t, found, pkg, "a layer contains a package that does not exist")
	}
}

// directoryOf returns the directory of the list that contains a package, the longest one.
func directoryOf(pkg string, order map[string]int) string {
	for at := pkg; at != "."; at = path.Dir(at) {
		if _, known := order[at]; known {
			return at
		}
	}
	return ""
}

// byDirectory returns the imports between these directories.
func byDirectory(order map[string]int, imports map[string][]string) map[string][]string {
	out := map[string][]string{}
	for pkg, imported := range imports {
		from := directoryOf(pkg, order)
		for _, to := range imported {
			if to := directoryOf(to, order); to != from && !slices.Contains(out[from], to) {
				out[from] = append(out[from], to)
			}
		}
	}
	return out
}

func TestDirectoriesImportLowerDirectories(t *testing.T) {
	directories := section(t, architecture(t), "Directories")
	order, found := linesOf(t, directories), imports(t, root)
	require.Empty(t, violations(order, byDirectory(order, found)), "move the package, or what it imports, to another directory")
	for pkg := range found {
		require.NotEmpty(t, directoryOf(pkg, order), "%s is in no directory", pkg)
		if !strings.HasSuffix(pkg, "test") && path.Dir(pkg) != "proto" { // helpers of tests, as machinetest, need no row
			require.Contains(t, directories, "`"+pkg+"`", "the table of directories lacks a package")
		}
	}
	for _, named := range regexp.MustCompile("`((?:"+strings.Join(slices.Collect(maps.Keys(order)), "|")+")/[a-z-/]+)`").FindAllStringSubmatch(directories, -1) {
		require.DirExists(t, filepath.Join(root, named[1]), "the table of directories has one that does not exist")
	}
}

func TestViolationsAreDetected(t *testing.T) {
	layer := linesOf(t, "\n```\ntop\nleft right\nbottom\n```\n")
	require.Empty(t, violations(layer, map[string][]string{"top": {"left", "bottom"}, "left": {"bottom"}}))
	require.Equal(t, []string{"left imports right"}, violations(layer, map[string][]string{"left": {"right"}}))
	require.Equal(t, []string{"bottom imports top"}, violations(layer, map[string][]string{"bottom": {"top"}}))
	require.Equal(t, []string{"unknown is in no layer"}, violations(layer, map[string][]string{"unknown": nil}))
	order := map[string]int{"left": 0, "left/top": 1, "bottom": 2}
	require.Equal(t, map[string][]string{"left": {"bottom"}, "left/top": {"left"}},
		byDirectory(order, map[string][]string{"left/a": {"left/b", "bottom/c"}, "left/b": {"bottom/d"}, "left/top/e": {"left/a"}}))
}
