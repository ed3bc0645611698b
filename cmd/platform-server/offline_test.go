package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHelpOfOfflineCommands(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, inspect(t.Context(), []string{"--help"}, nil, &out, &out))
	require.Contains(t, out.String(), "--partition")
	require.Contains(t, out.String(), "inspect entries --group")
	out.Reset()
	require.NoError(t, repair([]string{"drop-entry", "-h"}, nil, strings.NewReader(""), &out))
	require.Contains(t, out.String(), "--index")
}

func TestOfflineCommandsRefuse(t *testing.T) {
	for name, c := range map[string]struct{ args, want string }{
		"an unknown flag":    {"inspect --nope", "unknown flag: --nope; see platform-server inspect --help"},
		"a flag of a server": {"inspect --node-name n1", "name the data directory with --data-dir <base-dir>/<node-name>"},
		"an unknown command": {"inspect nothing", `"nothing" is no command; see platform-server inspect --help`},
		"a path":             {"inspect platform-data/n1", "a data directory is named with --data-dir"},
		"no group":           {"inspect entries", "--group is missing"},
		"no index":           {"repair drop-entry --group 1", "--index is missing"},
		"no command":         {"repair --yes", `"" is no command`},
		"no directory":       {"inspect --data-dir /nonexistent", "not the data directory of a node"},
	} {
		t.Run(name, func(t *testing.T) {
			words := strings.Fields(c.args)
			var err error
			if words[0] == "inspect" {
				err = inspect(t.Context(), words[1:], nil, new(bytes.Buffer), new(bytes.Buffer))
			} else {
				err = repair(words[1:], nil, strings.NewReader(""), new(bytes.Buffer))
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestConfirmationMustBeExact(t *testing.T) {
	ask := func(typed string) error {
		return confirm(strings.NewReader(typed), new(bytes.Buffer), "3 1042", "type: ")
	}
	require.NoError(t, ask("3 1042\n"))
	require.NoError(t, ask(" 3   1042"))
	for _, typed := range []string{"", "yes\n", "3\n", "31042\n", "3 1042 x\n"} {
		require.Error(t, ask(typed), typed)
	}
	require.EqualError(t, ask(""), "not confirmed, nothing was changed: standard input has no answer; --yes confirms")
}
