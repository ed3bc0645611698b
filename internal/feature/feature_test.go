package feature

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLimitOfTheBuildIsASupportedLevel(t *testing.T) {
	require.Equal(t, Newest, parseLimit(""))
	require.Equal(t, Level1, parseLimit("1"))
	require.Equal(t, Level2, parseLimit("2"))
	require.Equal(t, Level3, parseLimit("3"))
	require.Equal(t, Level4, parseLimit("4"))
	for _, bad := range []string{"0", "5", "-1", "two", "4294967297"} {
		require.Panics(t, func() { parseLimit(bad) }, bad)
	}
}

func TestServersThatAnnounceNothingAreAtTheFirstLevel(t *testing.T) {
	require.Equal(t, Level1, Announced(0))
	require.Equal(t, Level1, Announced(1))
	require.Equal(t, Level(7), Announced(7))
}

func TestRequireNamesBothLevels(t *testing.T) {
	require.NoError(t, Require(Level2, Level2, "x"))
	require.NoError(t, Require(Level2, Level1, "x"))
	err := Require(Level1, Level2, "a shared result")
	var refused *Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, Error{What: "a shared result", Needs: Level2, Level: Level1}, *refused)
	require.EqualError(t, err, "a shared result needs feature level 2, the cluster is at level 1: upgrade all nodes, see `platform cluster status`")
}

func TestTableOfChanges(t *testing.T) {
	kinds := []Kind{LogCommand, CommandField, RecordField, RPC, Derivation}
	names, last, levels := map[string]bool{}, Oldest, map[Level]bool{}
	for _, c := range Changes() {
		require.GreaterOrEqual(t, c.Level, last, "%s: the table ascends", c.Name)
		require.LessOrEqual(t, c.Level, Newest, c.Name)
		require.Contains(t, kinds, c.Kind, c.Name)
		require.NotEmpty(t, c.Name)
		require.False(t, names[c.Name], "%s comes twice", c.Name)
		require.NotEmpty(t, c.Description, c.Name)
		require.NotContains(t, c.Description, "\n", c.Name)
		require.False(t, strings.HasSuffix(c.Description, "."), c.Name)
		names[c.Name], last, levels[c.Level] = true, c.Level, true
	}
	for l := Oldest; l <= Newest; l++ {
		require.True(t, levels[l], "level %d introduces nothing", l)
	}
}
