package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/config"
)

// Registering an address of the node itself must not make it send requests to its own ports, while
// endpoints on the same machine are permitted: this is the usual first setup. Of those of other nodes,
// the failure of the discovery is explained.
func TestOwnPortsCannotBeRegistered(t *testing.T) {
	c := newTestCluster(t, 3)
	c.healthy(3, 0)
	refused := func(uri string, http11 bool, reason string) {
		code, body := c.do(0, true, "POST", "/deployments", fmt.Sprintf(`{"uri":%q,"use_http_11":%t}`, uri, http11))
		require.Equal(t, http.StatusBadRequest, code, body)
		require.Contains(t, body, "[META0022]", uri)
		require.Contains(t, body, reason+", where no service listens", uri)
	}
	for i, m := range c.nodes {
		ports := map[string]int{"the node port": m.cfg.BindPort, "the ingress": m.cfg.Ingress.BindPort, "the admin API": m.cfg.Admin.BindPort}
		for what, port := range ports {
			for _, http11 := range []bool{false, true} {
				if i > 0 {
					refused(fmt.Sprintf("http://127.0.0.1:%d/path", port), http11, fmt.Sprintf("%s of node n%d", what, i+1))
					continue
				}
				for _, host := range []string{"localhost", "127.1.2.3", "[::ffff:127.0.0.1]"} {
					refused(fmt.Sprintf("http://%s:%d", host, port), http11, "a port of this server itself")
				}
			}
		}
	}
	c.counter(0) // a service on another port of the loopback interface
}

// target is a port that counts connections, and closes them.
type target struct {
	port     int
	connects atomic.Int32
}

func newTarget(t *testing.T, host string) *target {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Skipf("this system has one loopback address only: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	counted := &target{port: l.Addr().(*net.TCPAddr).Port}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			counted.connects.Add(1)
			conn.Close()
		}
	}()
	return counted
}

// Whatever a node dials on behalf of users, an address or role that is denied is not dialled: brokers
// of Kafka clusters, token endpoints, identity providers and roles of functions. Without the rule, each
// of them is, which is what the counters prove.
func TestDeniedAddressesAreNotDialled(t *testing.T) {
	for _, denied := range []bool{false, true} {
		t.Run(fmt.Sprintf("denied=%t", denied), func(t *testing.T) {
			const host = "127.0.0.2"
			broker, tokens, provider, functions := newTarget(t, host), newTarget(t, host), newTarget(t, host), newTarget(t, "127.0.0.1")
			for name, value := range map[string]string{
				"AWS_ENDPOINT_URL": fmt.Sprintf("http://127.0.0.1:%d", functions.port), "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
				"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_MAX_ATTEMPTS": "1",
			} {
				t.Setenv(name, value)
			}
			c := newTestClusterWith(t, 1, func(cfg *config.Config) {
				oidc := &cfg.Security.OIDC
				oidc.Issuer, oidc.ExternalURL, oidc.ClientID = fmt.Sprintf("https://%s:%d", host, provider.port), fmt.Sprintf("http://localhost:%d", cfg.Admin.BindPort), "c"
				oidc.RolesClaim, oidc.Roles = "groups", map[string]string{"a": "viewer"}
				if denied {
					cfg.Egress.Deny, cfg.Egress.Roles = []string{host + "/32"}, []string{"arn:aws:iam::123456789012:role/allowed-*"}
				}
			})
			c.healthy(1, 0)

			c.counter(0) // a sink
			var state string
			for name, properties := range map[string]string{
				"plain": "", "tokens": fmt.Sprintf(`,"security.protocol":"sasl_plaintext","sasl.mechanism":"OAUTHBEARER","sasl.oauthbearer.method":"oidc","sasl.oauthbearer.client.id":"c",
					"sasl.oauthbearer.client.secret":"s","sasl.oauthbearer.token.endpoint.url":"http://%s:%d/token"`, host, tokens.port),
			} {
				require.Eventually(t, func() bool { // once the cluster has feature level 4
					code, body := c.do(0, true, "POST", "/kafka-clusters", fmt.Sprintf(`{"name":%q,"properties":{"bootstrap.servers":"%s:%d"%s}}`, name, host, broker.port, properties))
					state = body
					return code == http.StatusCreated
				}, waitTimeout, 50*time.Millisecond, &state)
				code, body := c.do(0, true, "POST", "/subscriptions", fmt.Sprintf(`{"source":"kafka://%s/topic","sink":"service://Counter/add"}`, name))
				require.Equal(t, http.StatusCreated, code, body)
			}
			_, text := c.do(0, true, "GET", "/login/start", "")
			const arn, role = "arn:aws:lambda:eu-central-1:123456789012:function:f:1", "arn:aws:iam::123456789012:role/other"
			code, refusal := c.do(0, true, "POST", "/deployments", fmt.Sprintf(`{"arn":%q,"assume_role_arn":%q}`, arn, role))
			require.GreaterOrEqual(t, code, 400, refusal)

			dialled := map[string]*target{"broker": broker, "identity provider": provider, "role": functions}
			if !denied {
				for name, target := range dialled {
					require.Eventually(t, func() bool { return target.connects.Load() > 0 }, waitTimeout, 10*time.Millisecond, name)
				}
				return
			}
			require.Contains(t, refusal, "egress.roles")
			require.Eventually(t, func() bool {
				_, state = c.do(0, true, "GET", "/subscriptions", "")
				return strings.Count(state, host) >= 2 && strings.Contains(state, "egress.deny")
			}, waitTimeout, 50*time.Millisecond, &state)
			dialled["token endpoint"] = tokens
			for name, target := range dialled {
				require.Zero(t, target.connects.Load(), name+": "+text)
			}
		})
	}
}

// The open mode is visible in the health check and in the web UI.
func TestTheOpenModeIsShown(t *testing.T) {
	for _, mode := range []config.SecurityMode{config.SecurityDefault, config.SecurityOpen} {
		c := newTestClusterWith(t, 1, func(cfg *config.Config) { cfg.Security.Mode = mode })
		c.healthy(1, 0)
		var health string
		require.Eventually(t, func() bool { // the partitions may not have a leader yet
			var code int
			code, health = c.do(0, true, "GET", "/health", "")
			return code == http.StatusOK
		}, waitTimeout, 10*time.Millisecond)
		code, text := c.do(0, true, "GET", "/whoami", "")
		require.Equal(t, http.StatusOK, code)
		var me struct {
			Mode string `json:"security_mode"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &me))
		require.Equal(t, string(mode), me.Mode, "the web UI has a banner because of it")
		require.Equal(t, mode == config.SecurityOpen, strings.Contains(health, `"security_mode":"open"`), health)
		c.stop(0)
	}
}
