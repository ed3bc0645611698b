package node

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Registering an address of the node itself must not make it send requests to its own ports, while
// endpoints on the same machine are permitted: this is the usual first setup.
func TestOwnPortsCannotBeRegistered(t *testing.T) {
	c := newTrio(t, 1)
	c.healthy(1, 0)
	cfg := c.nodes[0].cfg
	for _, port := range []int{cfg.BindPort, cfg.Ingress.BindPort, cfg.Admin.BindPort} {
		for _, host := range []string{"127.0.0.1", "localhost", "127.1.2.3", "[::ffff:127.0.0.1]"} {
			for _, http11 := range []bool{false, true} {
				code, body := c.do(0, true, "POST", "/deployments", fmt.Sprintf(`{"uri":"http://%s:%d","use_http_11":%t}`, host, port, http11))
				require.Equal(t, http.StatusBadGateway, code, body)
				require.Contains(t, body, "this server itself", host)
			}
		}
	}
	c.counter(0) // a service on another port of the loopback interface
}
