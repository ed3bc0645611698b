package subscriptions

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPropertiesWithCommasAreOneRow(t *testing.T) {
	require.Equal(t, [][]string{{"bootstrap.servers", "a:9092, b:9092"}, {"client.id", "x=y"}},
		propertyRows(map[string]string{"client.id": "x=y", "bootstrap.servers": "a:9092, b:9092"}))
}
