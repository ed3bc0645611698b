package dev

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTemporaryServerNeedsItsPorts(t *testing.T) {
	o := Options{Nodes: 2, BindIP: "127.0.0.1", RandomPorts: true, Sample: []string{"sample"}}
	nodes, err := o.newNodes()
	require.NoError(t, err)
	require.NoError(t, o.checkPorts(nodes))
	other, err := net.Listen("tcp", net.JoinHostPort(o.BindIP, strconv.Itoa(nodes[1].ports.Admin)))
	require.NoError(t, err)
	defer other.Close()
	err = o.checkPorts(nodes)
	require.ErrorContains(t, err, "port "+strconv.Itoa(nodes[1].ports.Admin)+" of the admin API of n2 cannot be used")
	var hinted *HintedError
	require.ErrorAs(t, err, &hinted)
	require.Contains(t, hinted.Hint, "--admin-port sets another port")
}

func TestOptionsAreChecked(t *testing.T) {
	ports := Ports{8080, 9070, 5122}
	for nodes, ip := range map[int]string{0: "127.0.0.1", 10: "127.0.0.1", 2: "0.0.0.0"} {
		o := Options{Nodes: nodes, BindIP: ip, Ports: ports, SamplePort: 9080}
		require.NotEmpty(t, o.Check())
	}
	o := Options{Nodes: 9, BindIP: "127.0.0.1", Ports: ports, SamplePort: 9080}
	require.Empty(t, o.Check())
	o.Ports.Node = 65535
	require.Contains(t, o.Check(), "--node-port is 1 to 65527")
	o.RandomPorts = true
	require.Empty(t, o.Check())
}
