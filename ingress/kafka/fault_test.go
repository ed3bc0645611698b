package kafka

import (
	"errors"
	"net"
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

// The alerts of TLS do not say whose certificate is meant.
func TestAlertOfTLSIsExplained(t *testing.T) {
	f := asFault(brokerFault(&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}))
	require.Equal(t, subscription.NotAuthorized, f.reason)
	require.Contains(t, f.message, "tls: bad certificate: the broker does not accept the certificate of this client, or requires one")
}
