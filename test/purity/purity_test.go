// Package purity checks the part of the purity rule that golangci-lint has no linter for:
// the packages that every replica runs on the same commands start no goroutines and use no
// channels. The rest of the rule is in .golangci.yml.
package purity

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// purePackages are relative to the root of the module.
var purePackages = []string{"partition/machine", "partition/journal", "flowcontrol"}

// violation describes the violation of the rule by a node, "" if there is none.
func violation(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "starts a goroutine"
	case *ast.SelectStmt:
		return "waits in a select"
	case *ast.SendStmt:
		return "sends to a channel"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "receives from a channel"
		}
	case *ast.ChanType:
		return "has a channel"
	case *ast.SelectorExpr:
		if of, ok := n.X.(*ast.Ident); ok && of.Name == "feature" && (n.Sel.Name == "Supported" || n.Sel.Name == "CheckCluster") {
			return "depends on what this server supports, which differs between replicas"
		}
	}
	return ""
}

// violations returns the violations in a file.
func violations(files *token.FileSet, file *ast.File) (out []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if what := violation(n); what != "" {
			out = append(out, files.Position(n.Pos()).String()+" "+what)
		}
		return true
	})
	return out
}

func TestPurePackagesHaveNoConcurrency(t *testing.T) {
	for _, dir := range purePackages {
		t.Run(dir, func(t *testing.T) {
			parsed := checkPackage(t, filepath.Join("..", "..", filepath.FromSlash(dir)))
			require.Positive(t, parsed, "no Go files in %s", dir)
		})
	}
}

// checkPackage checks every file below root and returns their number.
func checkPackage(t *testing.T, root string) (parsed int) {
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed++
		require.Empty(t, violations(files, file), "return an effect; the leader carries it out after commit")
		return nil
	})
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	return parsed
}

func TestViolationsAreDetected(t *testing.T) {
	const source = `package p
func f(c chan int) { go f(c); c <- 1; <-c; select {}; _ = feature.Supported() }`
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "p.go", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	require.Len(t, violations(files, file), 6)
}
