package invoker

import (
	"crypto/ed25519"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
	"platform/internal/target"
	"platform/invoker/discovery"
	"platform/invoker/identity"
	"platform/metadata"
	"platform/partition/machine"
)

func newSigner(t *testing.T) *identity.Signer {
	_, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	return identity.New(private, time.Minute)
}

func TestTheSDKAcceptsSignedRequests(t *testing.T) {
	cfg := quickConfig()
	cfg.Identity = newSigner(t)
	b := withSDK(t, cfg, serveSDK(t, newSigner(t).KeyID(), cfg.Identity.KeyID()), nil)
	_, ended := b.shard.call(greet("Greet"), 1, `"you"`)
	require.Equal(t, `"Hello you"`, string(receive(t, ended).Value))
	add := machine.Target{Service: "Counter", Key: `a "/é key`, Handler: "Add", Type: target.ObjectExclusive}
	_, ended = b.shard.call(add, 2, `2`)
	require.Equal(t, `2`, string(receive(t, ended).Value))
}

func TestTheSDKRejectsUnsignedRequestsAndOtherKeys(t *testing.T) {
	for name, signer := range map[string]*identity.Signer{"none": nil, "another key": newSigner(t)} {
		t.Run(name, func(t *testing.T) {
			cfg := onceConfig()
			cfg.Identity = signer
			uri := serveSDK(t, newSigner(t).KeyID())
			b := newBench(t, cfg, uri)
			find := discovery.DefaultConfig()
			find.Identity = signer
			_, err := discovery.New(b.iv.Client(), find).Discover(t.Context(), discovery.Request{URI: uri})
			code, _ := errcode.Of(err)
			require.Equal(t, errcode.META0003, code)
			require.ErrorContains(t, err, "did not accept discovery")

			id, _ := b.shard.call(greeter, 1, `"you"`)
			f := lastFailure(t, b, id)
			require.Equal(t, string(errcode.RT0012), f.ErrorCode)
			require.Contains(t, f.Message, "status 401")
		})
	}
}

func TestHeadersOfADeploymentOverrideTheSignature(t *testing.T) {
	cfg := quickConfig()
	cfg.Identity = newSigner(t)
	seen := make(chan []string, 4)
	b := scripted(t, cfg, func(x *exchange) {
		seen <- x.r.Header[http.CanonicalHeaderKey(identity.TokenHeader)]
		echo(x)
	})
	_, ended := b.shard.call(greeter, 1, `"hi"`)
	receive(t, ended)
	require.Len(t, <-seen, 1)
	b.change(func(d *metadata.Deployment) { d.AdditionalHeaders = map[string]string{"X-Restate-Jwt-V1": "own"} })
	_, ended = b.shard.call(greeter, 2, `"hi"`)
	receive(t, ended)
	require.Equal(t, []string{"own"}, <-seen)
}
