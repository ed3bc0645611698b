package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/cmd/platform/internal/cli"
	"platform/docs"
	"platform/internal/config"
	"platform/internal/errcode"
)

// TestReferencesAreCurrent compares the generated documents with the code; -update writes them.
func TestReferencesAreCurrent(t *testing.T) {
	for name, text := range map[string]string{"configuration": config.Reference(), "errors": errcode.Reference(), "cli": cli.Reference()} {
		if *update {
			require.NoError(t, os.WriteFile("../../docs/"+name+".md", []byte(text), 0o644)) //nolint:gosec // nothing secret
			continue
		}
		topic, ok := docs.Find(name)
		require.True(t, ok, name)
		require.Equal(t, text, topic.Text, "docs/%s.md is out of date: run make docs", name)
	}
}

// documents are the files for readers, by their paths.
func documents(t *testing.T) map[string]string {
	all := map[string]string{}
	for _, pattern := range []string{"../../*.md", "../../docs/*.md"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			all[path] = string(text)
		}
	}
	require.Greater(t, len(all), 10)
	return all
}

var (
	fence    = regexp.MustCompile("(?ms)^```[a-z ]*\n(.*?)^```")
	invoked  = regexp.MustCompile(`(?m)^\s*(?:\$ )?(?:bin/)?platform ([^\n|]*)`)
	inline   = regexp.MustCompile("`platform ([a-z][^`]*)`")
	linked   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code     = regexp.MustCompile("`[^`\n]*`") // within a line; it can look like a link
	makeRun  = regexp.MustCompile("(?m)(?:^|`)make ([a-z][a-z-]*)")
	flagName = regexp.MustCompile(`(?:^|\s)--([a-z][a-z0-9.-]*)`)
)

// TestDocumentedCommandsExist finds each command line of the documents: its command exists and has
// the flags.
func TestDocumentedCommandsExist(t *testing.T) {
	found := 0
	for path, text := range documents(t) {
		var lines []string
		for _, block := range fence.FindAllStringSubmatch(text, -1) {
			for _, m := range invoked.FindAllStringSubmatch(block[1], -1) {
				lines = append(lines, m[1])
			}
		}
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			lines = append(lines, m[1])
		}
		for _, line := range lines {
			found++
			root := cli.Command()
			root.InitDefaultHelpCmd() // else added when a command is executed
			words := strings.Fields(line)
			cmd, rest, err := root.Find(words)
			require.NoError(t, err, "%s: platform %s", path, line)
			require.NotEqual(t, root, cmd, "%s: platform %s", path, line)
			if cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && !strings.HasPrefix(rest[0], "<") {
				known := strings.Split(strings.Trim(rest[0], ",…`"), "|") // completions install|generate
				for _, name := range known {
					_, left, err := cmd.Find([]string{name})
					require.True(t, err == nil && len(left) == 0, "%s: platform %s: no command %q", path, line, name)
				}
			}
			for _, m := range flagName.FindAllStringSubmatch(line, -1) {
				local := cmd.Flags().Lookup(m[1])
				require.True(t, local != nil || root.PersistentFlags().Lookup(m[1]) != nil, "%s: platform %s: no flag --%s", path, line, m[1])
			}
		}
	}
	require.Greater(t, found, 100)
}

// TestDocumentedFilesAndTargetsExist checks links between files, and the targets of make.
func TestDocumentedFilesAndTargetsExist(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	for path, text := range documents(t) {
		for _, m := range linked.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || target == "" {
				continue
			}
			_, err := os.Stat(filepath.Join(filepath.Dir(path), target))
			require.NoError(t, err, "%s links to %s", path, m[1])
		}
		for _, m := range makeRun.FindAllStringSubmatch(text, -1) {
			require.Regexp(t, `(?m)^`+regexp.QuoteMeta(m[1])+`:`, string(makefile), "%s: make %s", path, m[1])
		}
	}
}

// TestMakefileVariablesAreDefined finds uses of variables without a definition: make replaces them
// by nothing, so that a path such as $(CONTEXT)/data becomes one below the root directory.
func TestMakefileVariablesAreDefined(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	// Of make itself, and options of its users whose names are in conditions.
	defined := map[string]bool{"MAKEFILE_LIST": true, "MAKE": true, "CURDIR": true, "ARGS": true}
	for _, pattern := range []string{`(?m)^([A-Z_]+)\s*[?:]?=`, `\$\((?:if|or) \$\(([A-Z_]+)\)`} {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(makefile), -1) {
			defined[m[1]] = true
		}
	}
	uses := regexp.MustCompile(`\$\(([A-Z_]+)\)`).FindAllStringSubmatch(string(makefile), -1)
	require.Greater(t, len(uses), 50)
	for _, m := range uses {
		require.True(t, defined[m[1]], "Makefile: $(%s) is not defined", m[1])
	}
}

func TestReadmeIsShort(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.LessOrEqual(t, len(strings.Fields(string(readme))), 1000, "move details to docs/")
}
