package layers

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	goFileName = regexp.MustCompile("`([a-z0-9_/*]+\\.go)`")
	// documentName is the path of a document and, if one is named, a section of it.
	documentName = regexp.MustCompile("`([A-Za-z0-9_/]+\\.md)`(?:, \"([^\"]+)\")?")
)

// Paths in the documents of packages are relative to their folder or to the root.
func TestDocumentsOfPackagesNameWhatExists(t *testing.T) {
	documents := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && notSource(path):
			return filepath.SkipDir
		case d.Name() != "DESIGN.md" && d.Name() != "DECISIONS.md" && d.Name() != "MEASUREMENTS.md" && d.Name() != "ELECTIONS.md" && d.Name() != "ARCHITECTURE.md":
			return nil
		}
		documents++
		document := strings.TrimPrefix(path, root+"/")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, name := range goFileName.FindAllStringSubmatch(string(text), -1) {
			if document != "ARCHITECTURE.md" { // its tables name files of the package of the row
				assert.NotEmpty(t, namedIn(t, path, name[1]), "%s names %s, which does not exist", document, name[1])
			}
		}
		for _, name := range documentName.FindAllStringSubmatch(string(text), -1) {
			named := namedIn(t, path, name[1])
			if document == "ARCHITECTURE.md" && !strings.Contains(name[1], "/") {
				continue
			}
			if assert.NotEmpty(t, named, "%s names %s, which does not exist", document, name[1]) && name[2] != "" {
				other, err := os.ReadFile(named[0])
				require.NoError(t, err)
				assert.Regexp(t, `(?m)^(#+ |\*\*|- \*\*)`+regexp.QuoteMeta(name[2]), string(other), "%s names a section of %s", document, name[1])
			}
		}
		return nil
	}))
	require.Greater(t, documents, 15)
}

// namedIn returns the files that a document names.
func namedIn(t *testing.T, document, name string) []string {
	near, err := filepath.Glob(filepath.Join(filepath.Dir(document), name))
	require.NoError(t, err)
	far, err := filepath.Glob(filepath.Join(root, name))
	require.NoError(t, err)
	return append(far, near...)
}
