package memory

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPayloadsFitIntoTheMemoryLimit(t *testing.T) {
	const mib = 1 << 20
	p := PayloadLimits{Bodies: 256 * mib, Connection: 64 * mib, Attempts: 512 * mib}
	require.Equal(t, p, p.within(768*mib, 32*mib))
	require.Equal(t, PayloadLimits{128 * mib, 64 * mib, 256 * mib}, p.within(384*mib, 32*mib))
	require.Equal(t, PayloadLimits{32 * mib, 32 * mib, 32 * mib}, p.within(40*mib, 32*mib), "each has room for a message")
	require.Equal(t, PayloadLimits{8 * mib, 8 * mib, 32 * mib}, PayloadLimits{8 * mib, 64 * mib, 512 * mib}.within(mib, 32*mib), "never raised")
}
