package kafka

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"platform/internal/subscription"
)

// The text of the broker does not say what is wrong if it uses no SASL.
func TestSASLWithABrokerWithoutItIsExplained(t *testing.T) {
	f := asFault(brokerFault(kerr.IllegalSaslState))
	require.Equal(t, subscription.NotAuthorized, f.reason)
	require.Contains(t, f.message, "check security.protocol")
}
