package enroll

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/certs"
)

const (
	// shortValidity is the validity of the certificates that are renewed: when a third of it is left.
	shortValidity = 24 * time.Second
	renewals      = 2 // of each node
)

// Three nodes whose certificates are valid for seconds renew them under load, and no call fails. A
// used and an expired token give no certificate, and that of a removed node permits nothing.
func TestCertificatesAreRenewedUnderLoad(t *testing.T) {
	c := newCluster(t)
	token := c.createToken(`{"node":"n2"}`)
	// The authority signs certificates that are valid for less than the configuration permits.
	require.NoError(t, c.nodes[0].Stop())
	authority := c.authority()
	require.NoError(t, c.nodes[0].Restart(t.Context()))
	c.giveToken("n2", token)
	require.NoError(t, c.add("n2", nil).Restart(t.Context()))
	c.join("n3", map[string]string{"SECURITY__SECRETS__KEY_FILE": ""}) // other nodes renew its certificate
	c.counter()
	c.replicated(3)

	good := c.createToken(`{"node":"n4"}`)
	expired := c.createToken(`{"node":"n4","expires_in":"1s"}`)
	c.giveToken("n4", token)
	n4 := c.add("n4", map[string]string{"SECURITY__NODE_TLS__CERTIFICATE_VALIDITY": "1h"}) // of the certificate that it renews itself
	require.NoError(t, n4.Launch())

	l := c.startLoad(3)
	for round := range renewals {
		c.renewAll(authority)
		l.proceeds()
		switch round {
		case 0:
			c.await("the used token is not refused", func() bool { return c.logged(0, "was used by node") })
			c.giveToken("n4", expired)
		case 1:
			c.await("the expired token is not refused", func() bool { return c.logged(0, "has expired") })
			require.True(t, c.logged(3, "refused; the log of that node has the reason"))
			require.NoFileExists(t, c.in(3, "node-tls.pem"))
			require.Equal(t, []string{"n1", "n2", "n3"}, c.names())
			c.giveToken("n4", good)
		}
	}
	// All certificates of the beginning have expired: new connections use the renewed ones.
	for i := range 3 {
		l.restart(i)
	}
	l.stop()
	_, audit := c.admin(0, http.MethodGet, "/audit?limit=1000", "")
	for _, name := range []string{"n1", "n2", "n3"} {
		n := strings.Count(audit, fmt.Sprintf(`"action":"RenewCertificate","object":%q`, name))
		require.GreaterOrEqual(t, n, renewals, "%s: %s", name, audit)
	}
	c.removed(authority)
}

// renewAll gives the first three nodes certificates that expire soon, and waits until each has
// replaced its own.
func (c *cluster) renewAll(authority *certs.Authority) {
	c.Helper()
	given := make([]string, 3)
	for i := range given {
		both, pair := issue(c.T, authority, c.nodes[i].Name(), shortValidity)
		given[i] = pair.Leaf.SerialNumber.String()
		replaceFile(c.T, c.in(i, "node-tls.pem"), both)
	}
	for i := range given {
		c.await("the certificate is not used", func() bool {
			leaf := c.served(i)
			return leaf != nil && leaf.SerialNumber.String() == given[i]
		})
	}
	for i := range given {
		c.await("the certificate is not renewed", func() bool {
			leaf := c.served(i)
			return leaf != nil && leaf.SerialNumber.String() != given[i] && time.Until(leaf.NotAfter) > shortValidity
		})
	}
}
