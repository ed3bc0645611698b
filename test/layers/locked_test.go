package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The callers of a method with the suffix Locked hold a lock: they take one, or have the suffix as well.
func TestCallersOfLockedMethodsLock(t *testing.T) {
	calls := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (notSource(path) || d.Name() == "testdata"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			locks := strings.HasSuffix(f.Name.Name, "Locked")
			var called []*ast.CallExpr
			ast.Inspect(f.Body, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch name := calledName(call); {
				case strings.HasSuffix(name, "Locked"):
					called = append(called, call)
				case strings.HasPrefix(strings.ToLower(name), "lock"), name == "RLock", name == "TryLock":
					locks = true
				}
				return true
			})
			calls += len(called)
			for _, call := range called {
				assert.True(t, locks, "%s: %s calls %s without a lock", files.Position(call.Pos()), f.Name.Name, calledName(call))
			}
		}
		return nil
	}))
	require.Greater(t, calls, 100)
}

// notSource reports whether a directory contains what was built or downloaded.
func notSource(dir string) bool {
	name := filepath.Base(dir)
	return name == "node_modules" || name == ".git" || dir == filepath.Join(root, "bin")
}

func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}
