package ids

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNodeForms(t *testing.T) {
	for _, text := range []string{"N7", "7"} {
		n, err := ParseNode(text)
		require.NoError(t, err)
		require.Equal(t, Node(7), n)
	}
	for _, text := range []string{"", "N", "n7", "N0", "0", "-1", "N-1", "N 7", "7N", "NN7", "N7:1", "4294967296", "1.0"} {
		_, err := ParseNode(text)
		require.ErrorIs(t, err, errFormat, text)
	}
	require.Equal(t, "N4294967295", Node(1<<32-1).String())
}

func TestNodeInJSON(t *testing.T) {
	type body struct {
		Node   Node          `json:"node"`
		Absent Node          `json:"absent,omitempty"`
		List   []Node        `json:"list"`
		ByNode map[Node]bool `json:"by_node"`
	}
	text, err := json.Marshal(body{Node: 3, List: []Node{1, 2}, ByNode: map[Node]bool{4: true}})
	require.NoError(t, err)
	require.JSONEq(t, `{"node":"N3","list":["N1","N2"],"by_node":{"N4":true}}`, string(text))

	var got body
	require.NoError(t, json.Unmarshal([]byte(`{"node":"N3","absent":null,"list":[1,"2","N3"],"by_node":{"N4":true}}`), &got))
	require.Equal(t, body{Node: 3, List: []Node{1, 2, 3}, ByNode: map[Node]bool{4: true}}, got)
	for _, wrong := range []string{`"x"`, `1.5`, `-1`, `0`, `{}`, `[]`, `true`, `""`} {
		require.ErrorIs(t, json.Unmarshal([]byte(`{"node":`+wrong+`}`), &got), errFormat, wrong)
	}
}
