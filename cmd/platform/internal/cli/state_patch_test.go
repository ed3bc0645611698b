package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestApplyPatch(t *testing.T) {
	const document = `{"value":3,"list":[1,2,3],"a/b":{"c":12345678901234567890}}`
	for name, c := range map[string]struct{ patch, want string }{
		"merge":           {`{"value":4,"list":null,"new":{"x":1,"y":null}}`, `{"a/b":{"c":12345678901234567890},"new":{"x":1},"value":4}`},
		"space":           {"\n {\"value\":4} ", `{"value":4,"list":[1,2,3],"a/b":{"c":12345678901234567890}}`},
		"replace":         {`[{"op":"replace","path":"/value","value":"x"}]`, `{"value":"x","list":[1,2,3],"a/b":{"c":12345678901234567890}}`},
		"replace in list": {`[{"op":"replace","path":"/list/1","value":9}]`, `{"value":3,"list":[1,9,3],"a/b":{"c":12345678901234567890}}`},
		"add to list":     {`[{"op":"add","path":"/list/0","value":0},{"op":"add","path":"/list/-","value":4}]`, `{"value":3,"list":[0,1,2,3,4],"a/b":{"c":12345678901234567890}}`},
		"remove":          {`[{"op":"remove","path":"/list/0"},{"op":"remove","path":"/value"}]`, `{"list":[2,3],"a/b":{"c":12345678901234567890}}`},
		"escaped":         {`[{"op":"add","path":"/a~1b/d~0e","value":1}]`, `{"value":3,"list":[1,2,3],"a/b":{"c":12345678901234567890,"d~e":1}}`},
		"move":            {`[{"op":"move","from":"/value","path":"/moved"}]`, `{"moved":3,"list":[1,2,3],"a/b":{"c":12345678901234567890}}`},
		"copy and test":   {`[{"op":"copy","from":"/value","path":"/list/0"},{"op":"test","path":"/list/0","value":3}]`, `{"value":3,"list":[3,1,2,3],"a/b":{"c":12345678901234567890}}`},
		"whole":           {`[{"op":"replace","path":"","value":{}}]`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := applyPatch([]byte(document), []byte(c.patch))
			require.NoError(t, err)
			require.JSONEq(t, c.want, string(got))
			if name != "whole" {
				require.Contains(t, string(got), "12345678901234567890", "numbers are not rounded")
			}
		})
	}
}

func TestPatchesThatDoNotFit(t *testing.T) {
	for patch, message := range map[string]string{
		`3`:                             "an array of operations or an object",
		`[{}]`:                          "operation",
		`[{"op":"change","path":"/a"}]`: "change",
		`[{"op":"remove","path":"/b"}]`: "/b",
		`[{"op":"replace","path":"/a/x","value":1}]`:     "/a/x",
		`[{"op":"add","path":"/list/9","value":1}]`:      "9",
		`[{"op":"test","path":"/a","value":2}]`:          "/a",
		`[{"op":"move","path":"/x"}]`:                    "from",
		`[{"op":"add","path":"/deep/deeper","value":1}]`: "/deep",
		`{"a":`: "it is not valid JSON: unexpected end of JSON input",
		`a=1`:   "it is not valid JSON: invalid character 'a'",
	} {
		_, err := applyPatch([]byte(`{"a":1,"list":[]}`), []byte(patch))
		require.Error(t, err, patch)
		require.ErrorContains(t, err, message, patch)
	}
}
