// Package purity holds the part of the purity rule that golangci-lint has no
// linter for: the packages that every replica runs on the same commands start no
// goroutine and wait for none. The rest of the rule is in .golangci.yml.
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

// pure lists the packages, from the root of the module.
var pure = []string{"partition/machine", "partition/journal", "flowcontrol"}

// impurity names what is wrong with a node of a pure package, "" if nothing is.
func impurity(n ast.Node) string {
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
			return "asks what this server supports, which differs between replicas"
		}
	}
	return ""
}

// findings returns a line for each impurity in a file.
func findings(files *token.FileSet, file *ast.File) (out []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if what := impurity(n); what != "" {
			out = append(out, files.Position(n.Pos()).String()+" "+what)
		}
		return true
	})
	return out
}

func TestPurePackagesHaveNoConcurrency(t *testing.T) {
	for _, dir := range pure {
		t.Run(dir, func(t *testing.T) {
			parsed := parse(t, filepath.Join("..", "..", filepath.FromSlash(dir)))
			require.Positive(t, parsed, "there is nothing in %s", dir)
		})
	}
}

// parse holds every file below root to the rule and returns how many there are.
func parse(t *testing.T, root string) (parsed int) {
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
		require.Empty(t, findings(files, file), "return an effect; the leader carries it out after commit")
		return nil
	})
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	return parsed
}

func TestImpurityIsFound(t *testing.T) {
	const source = `package p
func f(c chan int) { go f(c); c <- 1; <-c; select {}; _ = feature.Supported() }`
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "p.go", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	require.Len(t, findings(files, file), 6)
}
