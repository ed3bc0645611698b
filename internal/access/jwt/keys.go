package jwt

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// keysAge is how long keys are used before they are read again. An issuer stops publishing a key that
// may have been stolen. Older keys remain in use while the issuer does not respond.
const keysAge = time.Hour

// keys are the keys of an issuer. Keys that are not known yet are read when the first token with them
// arrives.
type keys struct {
	client  *http.Client
	address string
	now     func() time.Time

	reading sync.Mutex // held by the verification that reads the keys again

	mu   sync.Mutex // covers the fields below
	set  oidc.KeySet
	read time.Time // also of the last attempt
}

func newKeys(client *http.Client, address string, now func() time.Time) *keys {
	k := &keys{client: client, address: address, now: now, read: now()}
	k.set = k.remote()
	return k
}

func (k *keys) remote() oidc.KeySet {
	return oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), k.client), k.address)
}

// VerifySignature implements oidc.KeySet.
func (k *keys) VerifySignature(ctx context.Context, text string) ([]byte, error) {
	if k.due() && k.reading.TryLock() {
		k.renew(ctx)
		k.reading.Unlock()
	}
	k.mu.Lock()
	set := k.set
	k.mu.Unlock()
	return set.VerifySignature(ctx, text)
}

func (k *keys) due() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now().Sub(k.read) >= keysAge
}

// renew forgets the keys if the issuer can be asked for them. The transport repeats its response to
// what reads them next.
func (k *keys) renew(ctx context.Context) {
	published := k.published(context.WithoutCancel(ctx)) // a client that disconnects must not prevent it
	k.mu.Lock()
	defer k.mu.Unlock()
	if !published {
		k.read = k.now().Add(retryInterval - keysAge)
		return
	}
	k.set, k.read = k.remote(), k.now()
}

// published reports whether the issuer responds with keys.
func (k *keys) published(ctx context.Context) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, k.address, http.NoBody)
	if err != nil {
		return false
	}
	resp, err := k.client.Do(r)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	return resp.StatusCode == http.StatusOK && json.NewDecoder(resp.Body).Decode(&document) == nil && document.Keys != nil
}
