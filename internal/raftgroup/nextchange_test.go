package raftgroup

import (
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// members reads a configuration: "a b? c@d" is the voter a, the non-voter b, and
// the voter c at the address of d.
func members(text string) (out []raft.Server) {
	for _, word := range strings.Fields(text) {
		s := raft.Server{Suffrage: raft.Voter}
		if strings.HasSuffix(word, "?") {
			s.Suffrage = raft.Nonvoter
			word = strings.TrimSuffix(word, "?")
		}
		id, addr, moved := strings.Cut(word, "@")
		if !moved {
			addr = id
		}
		s.ID, s.Address = raft.ServerID(id), raft.ServerAddress(addr+":1")
		out = append(out, s)
	}
	return out
}

func TestNextChange(t *testing.T) {
	// a leads. Followers in good are caught up, those in late respond and lack entries.
	tests := map[string]struct {
		current, desired string
		good, late       string
		want             string // operation and server, or the reason to wait
	}{
		"nothing to do":                        {current: "a b c", desired: "c a b", good: "b c", want: "none"},
		"nothing to do but one is down":        {current: "a b c", desired: "a b c", good: "b", want: "none"},
		"add a missing node, without a vote":   {current: "a", desired: "a b c", want: "add non-voter b"},
		"add a desired non-voter":              {current: "a", desired: "a b?", want: "add non-voter b"},
		"a non-voter stays one":                {current: "a b?", desired: "a b?", good: "b", want: "none"},
		"all are added before one is waited":   {current: "a b?", desired: "a b c", late: "b", want: "add non-voter c"},
		"wait for a node that lags":            {current: "a b? c?", desired: "a b c", late: "b c", want: "c misses 7 entries"},
		"wait for a node that is down":         {current: "a b?", desired: "a b", want: "b does not respond"},
		"promote a node that caught up":        {current: "a b? c?", desired: "a b c", late: "b", good: "c", want: "add voter c"},
		"a leader without a vote":              {current: "a? b c", desired: "a b c", good: "b c", want: "add voter a"},
		"no removal before promotions":         {current: "a b c d?", desired: "a b d", good: "b c", late: "d", want: "d misses 7 entries"},
		"remove a surplus node":                {current: "a b c d", desired: "a b d", good: "b c d", want: "remove c"},
		"surplus non-voters go first":          {current: "a b? c", desired: "a d", good: "b c", want: "remove b"},
		"remove who is gone":                   {current: "a b c d", desired: "a b d", good: "b d", want: "remove c"},
		"of two, who is gone first":            {current: "a b c", desired: "a", good: "b", want: "remove c"},
		"shrink to one":                        {current: "a b", desired: "a", good: "b", want: "remove b"},
		"no majority would be left":            {current: "a b c d", desired: "a b d", good: "c", want: "c cannot be removed: the others would be no majority"},
		"those who lag are no majority":        {current: "a b c", desired: "a b", good: "c", late: "b", want: "c cannot be removed: the others would be no majority"},
		"demote":                               {current: "a b c", desired: "a b c?", good: "b c", want: "demote c"},
		"the leader goes last":                 {current: "a b c", desired: "b c", good: "b c", want: "transfer leadership b"},
		"to one who has the log":               {current: "a b c", desired: "b c", good: "c", late: "b", want: "transfer leadership c"},
		"without a transfer target":            {current: "a b", desired: "b", late: "b", want: "no other replica can take over leadership"},
		"leader becomes a non-voter":           {current: "a b c", desired: "a? b c", good: "b c", want: "transfer leadership b"},
		"others first":                         {current: "a b c d", desired: "b c", good: "b c d", want: "remove d"},
		"new address of a voter":               {current: "a b", desired: "a b@x", want: "add voter b"},
		"new address of a non-voter":           {current: "a b?", desired: "a b@x", want: "add non-voter b"},
		"own new address":                      {current: "a b", desired: "a@x b", good: "b", want: "add voter a"},
		"address of a lost replica":            {current: "a b c", desired: "a b d@c", good: "b", want: "remove c"},
		"address of a lost replica, no quorum": {current: "a b c", desired: "a b d@c", late: "b", want: "c cannot be removed: the others would be no majority"},
		"lost replica is out":                  {current: "a b", desired: "a b d@c", good: "b", want: "add non-voter d"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var followers []Follower
			for _, s := range members(tt.good) {
				followers = append(followers, Follower{Server: s, Live: true, CaughtUp: true})
			}
			for _, s := range members(tt.late) {
				followers = append(followers, Follower{Server: s, Live: true, Lag: 7})
			}
			c := nextChange("a", members(tt.current), members(tt.desired), followers)
			got := c.why
			if c.why == "" {
				got = strings.TrimSpace(c.op.String() + " " + string(c.server.ID))
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestDesiredMembersAreChecked(t *testing.T) {
	require.NoError(t, checkDesired(members("a b?")))
	for _, bad := range []string{"", "a?", "a a"} {
		require.Error(t, checkDesired(members(bad)), bad)
	}
	require.Error(t, checkDesired([]raft.Server{{ID: "a"}}))
}
