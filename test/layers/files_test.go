package layers

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A renamed file has its previous content again after a power failure, unless its directory is synced.
func TestOnlyDurableRenames(t *testing.T) {
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch at := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator))); {
		case err != nil:
			return err
		case e.IsDir() && (at == "bin" || at == "test" || at == "internal/durable" || e.Name() == "node_modules"):
			return filepath.SkipDir
		case !strings.HasSuffix(at, ".go") || strings.HasSuffix(at, "_test.go"):
			return nil
		default:
			text, err := os.ReadFile(path)
			assert.False(t, strings.Contains(string(text), "os.Rename("), "%s must use durable.Rename or durable.ReplaceFile", at)
			return err
		}
	}))
}
