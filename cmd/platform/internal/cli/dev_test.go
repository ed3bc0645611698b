package cli

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTemporaryServerNeedsItsPorts(t *testing.T) {
	s := devServer{bindIP: "127.0.0.1"}
	require.NoError(t, freePorts(s.bindIP, &s.node, &s.ingress, &s.admin))
	require.NoError(t, s.checkPorts())
	other, err := net.Listen("tcp", net.JoinHostPort(s.bindIP, strconv.Itoa(s.admin)))
	require.NoError(t, err)
	defer other.Close()
	err = s.checkPorts()
	require.ErrorContains(t, err, "port "+strconv.Itoa(s.admin)+" of the admin API cannot be used")
	var hinted *hintedError
	require.ErrorAs(t, err, &hinted)
}
