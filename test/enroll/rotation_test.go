package enroll

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/certs"
)

// An authority that the cluster created is replaced while three nodes are under load: one that is down
// delays it, no call fails, and then certificates of the previous authority are refused.
func TestTheAuthorityIsReplacedUnderLoad(t *testing.T) {
	c := newCluster(t)
	c.createToken(`{"node":"n9"}`) // the metadata have the authority
	require.NoError(t, c.nodes[0].Stop())
	old := c.authority()
	require.NoError(t, c.nodes[0].Restart(t.Context()))
	for _, name := range []string{"n2", "n3"} {
		c.join(name, map[string]string{"SECURITY__NODE_TLS__CERTIFICATE_VALIDITY": "1h"})
	}
	c.counter()
	c.replicated(3)
	l := c.startLoad(3)

	l.up[2].Store(false)
	require.NoError(t, c.nodes[2].Stop())
	next, err := certs.NewAuthority(clusterName, time.Hour)
	require.NoError(t, err)
	key, err := next.KeyPEM()
	require.NoError(t, err)
	body, err := json.Marshal(map[string]string{"certificate": string(next.CertPEM()), "key": string(key)})
	require.NoError(t, err)
	code, answer := c.admin(0, http.MethodPut, "/cluster/authority", string(body))
	require.Equal(t, http.StatusOK, code, answer)
	for i := range 2 {
		c.await("the node does not wait for n3", func() bool { return c.logged(i, "not all members trust the new authority yet: node n3") })
		require.NoError(t, c.served(i).CheckSignatureFrom(old.Cert))
	}
	require.NoError(t, c.nodes[2].Restart(t.Context()))
	c.replicated(3)
	l.up[2].Store(true)

	packets, err := next.PacketKey()
	require.NoError(t, err)
	for i := range c.nodes {
		c.await("the previous authority is still trusted", func() bool {
			leaf := c.served(i)
			trusted, err := os.ReadFile(c.in(i, "node-tls-ca.crt"))
			require.NoError(t, err)
			return leaf != nil && leaf.CheckSignatureFrom(next.Cert) == nil && bytes.Equal(trusted, next.CertPEM())
		})
		keys, err := os.ReadFile(c.in(i, "node-tls-gossip.key"))
		require.NoError(t, err)
		require.Equal(t, packets, keys)
	}
	l.restart(1)
	l.proceeds()
	l.stop()

	id := c.identityOf(1)
	target := "n1/" + c.identityOf(0).Incarnation
	for _, a := range []*certs.Authority{old, next} {
		_, pair := issue(t, a, "n2", time.Hour)
		_, err := attempt(t.Context(), c.dialNode(0, pair), methodNamed("Join"), id, "n2", target)
		if a == old {
			require.Error(t, err, "the previous authority")
		} else {
			require.NoError(t, err)
		}
	}
	token := c.createToken(`{"node":"n4"}`)
	c.giveToken("n4", token)
	require.NoError(t, c.add("n4", nil).Restart(t.Context()))
	require.NoError(t, c.served(3).CheckSignatureFrom(next.Cert))
}
