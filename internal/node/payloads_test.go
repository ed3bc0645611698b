package node

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPayloadsFitIntoTheMemoryLimit(t *testing.T) {
	const mib = 1 << 20
	p := payloadLimits{bodies: 256 * mib, connection: 64 * mib, attempts: 512 * mib}
	require.Equal(t, p, p.within(768*mib, 32*mib))
	require.Equal(t, payloadLimits{128 * mib, 64 * mib, 256 * mib}, p.within(384*mib, 32*mib))
	require.Equal(t, payloadLimits{32 * mib, 32 * mib, 32 * mib}, p.within(40*mib, 32*mib), "each has room for a message")
	require.Equal(t, payloadLimits{8 * mib, 8 * mib, 32 * mib}, payloadLimits{8 * mib, 64 * mib, 512 * mib}.within(mib, 32*mib), "never raised")
}
