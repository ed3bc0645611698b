package tokens

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/metadata"
)

func TestUsesOfTokensAreRecordedSparsely(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	uses := new(Uses)
	stored := map[string]metadata.Token{"new": {}, "recent": {LastUsed: now.Add(-time.Minute)}, "old": {LastUsed: now.Add(-time.Hour)}}
	find := func(id string) (metadata.Token, bool) { t, ok := stored[id]; return t, ok }
	for id := range stored {
		uses.Add(id, now)
	}
	uses.Add("revoked", now)
	require.ElementsMatch(t, []metadata.TokenUse{{ID: "new", At: now}, {ID: "old", At: now}}, uses.due(find))
	require.Empty(t, uses.due(find))
}
