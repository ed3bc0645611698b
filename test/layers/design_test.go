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

var goFileName = regexp.MustCompile("`([a-z0-9_/*]+\\.go)`")

// A path in a DESIGN.md is relative to its folder or to the root.
func TestDesignDocumentsNameFilesThatExist(t *testing.T) {
	documents := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case d.Name() != "DESIGN.md":
			return nil
		}
		documents++
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, name := range goFileName.FindAllStringSubmatch(string(text), -1) {
			near, err := filepath.Glob(filepath.Join(filepath.Dir(path), name[1]))
			require.NoError(t, err)
			far, err := filepath.Glob(filepath.Join(root, name[1]))
			require.NoError(t, err)
			assert.NotEmpty(t, append(near, far...), "%s names %s, which does not exist", strings.TrimPrefix(path, root+"/"), name[1])
		}
		return nil
	}))
	require.Greater(t, documents, 10)
}
