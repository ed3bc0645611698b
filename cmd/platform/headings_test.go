package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Headings of tables are single words, so that programs such as awk can split them.
func TestTableHeadingsHaveNoSpaces(t *testing.T) {
	spaced := regexp.MustCompile(`"[A-Z]+(?:[ -][A-Z]+)* [A-Z]+(?:[ -][A-Z]+)*"`)
	statements := []string{`"SHOW TABLES"`} // of SQL
	require.NoError(t, filepath.WalkDir("internal", func(path string, entry os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, heading := range spaced.FindAllString(string(text), -1) {
			require.Contains(t, statements, heading, path)
		}
		return nil
	}))
}
