package subscriptions

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPropertiesWithCommasAreOneRow(t *testing.T) {
	require.Equal(t, [][]string{{"bootstrap.servers", "a:9092, b:9092"}, {"client.id", "x=y"}},
		propertyRows(map[string]string{"client.id": "x=y", "bootstrap.servers": "a:9092, b:9092"}))
}

func TestOffsetsOfSeek(t *testing.T) {
	for want, args := range map[string][]string{
		`{"offsets":{"0":5,"1":7}}`:                              {"0=5", "1=7"},
		`{"offsets":{"orders":{"0":5,"1":7},"returns":{"0":1}}}`: {"orders/0=5", "orders/1=7", "returns/0=1"},
		`"earliest"`:          {"earliest"},
		`{"offsets":{"0":5}}`: {`{"offsets":{"0":5}}`},
	} {
		got, err := seekJSON(args)
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
	}
	for _, args := range [][]string{
		{"0=5", "0=7"}, {"orders/0=5", "orders/0=7"}, {"0=5", "0/1=7"}, {"0/1=5", "0=7"}, // an argument would have no effect
		{`{"offsets":{"0":5}}`, "1=7"}, {"earliest", "1=7"}, {"0=x"}, {"=5x"},
	} {
		_, err := seekJSON(args)
		require.Error(t, err, args)
	}
}

func TestPropertiesGivenTwice(t *testing.T) {
	a := new(commands)
	got, err := a.properties("", []string{"client.id=x=y", "client.rack="})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"client.id": "x=y", "client.rack": ""}, got)
	_, err = a.properties("", []string{"client.id=x", "client.id=y"})
	require.ErrorContains(t, err, `the property "client.id" is given twice`)
}
