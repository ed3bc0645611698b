package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// handlesEveryCommand are the files that decide something for each journal command. The compiler
// does not notice a missing case; other files have cases for some commands only. ARCHITECTURE.md,
// "accept another journal command", lists all of them.
var handlesEveryCommand = []string{
	"partition/machine/apply_command.go",
	"partition/machine/check.go",
	"invoker/protocol/command.go",
	"admin/query/entryjson.go",
	"admin/ui/web/src/lib/journal.ts",
}

func TestEveryJournalCommandIsHandled(t *testing.T) {
	commands := commandNames(t)
	require.Contains(t, commands, "CompleteAwakeable")
	for _, file := range handlesEveryCommand {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(file)))
		require.NoError(t, err)
		for _, name := range commands {
			// The server itself writes the Input, so handlers cannot send it.
			if name == "Input" && file != "admin/ui/web/src/lib/journal.ts" && file != "admin/query/entryjson.go" {
				continue
			}
			// assert.Regexp would print the file.
			assert.True(t, regexp.MustCompile(`\b`+name+`\b`).Match(text), "%s has no case for the journal command %s", file, name)
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "partition", "journal", "types.go"))
	require.NoError(t, err)
	for _, name := range commands {
		assert.True(t, regexp.MustCompile(`\b`+name+`:\s+"`).Match(text), "partition/journal/types.go has no name of the journal command %s for users", name)
	}
}

// commandNames returns the constants of the first block of types, which are the commands.
func commandNames(t *testing.T) (names []string) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "partition", "journal", "types.go"), nil, 0)
	require.NoError(t, err)
	for _, d := range file.Decls {
		block, ok := d.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		for _, s := range block.Specs {
			for _, name := range s.(*ast.ValueSpec).Names {
				names = append(names, name.Name)
			}
		}
		return names
	}
	return nil
}
