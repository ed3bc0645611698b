package metadata

import (
	"platform/internal/ids"
	"platform/internal/keyring"
	"platform/internal/subscription"
)

// readable is the part of a state that contains secrets, as readers get it: decrypted. Records
// that cannot be decrypted say so.
type readable struct {
	schemas       *Schemas
	clusters      []subscription.Cluster      // sorted by name
	subscriptions []subscription.Subscription // sorted by ID

	// opened maps deployments of the state with encrypted headers to those of schemas.
	opened map[*Deployment]*Deployment
}

func newReadable(keys *keyring.Keyring, st *state) *readable {
	r := new(readable)
	r.openSchemas(keys, st, nil)
	r.openSubscriptions(keys, st)
	return r
}

// after returns what readers get after a draft.
func (r *readable) after(keys *keyring.Keyring, d *draft, schemasChanged bool) *readable {
	next := *r
	if schemasChanged {
		next.openSchemas(keys, &d.state, r.opened)
	}
	if d.subscriptionsChanged {
		next.openSubscriptions(keys, &d.state)
	}
	return &next
}

// openSchemas decrypts the headers of deployments, except of those that known contains.
func (r *readable) openSchemas(keys *keyring.Keyring, st *state, known map[*Deployment]*Deployment) {
	r.schemas, r.opened = st.schemas, map[*Deployment]*Deployment{}
	for _, d := range st.schemas.Deployments {
		if open := known[d]; open != nil {
			r.opened[d] = open
		} else if open := openDeployment(keys, d); open != d {
			r.opened[d] = open
		}
	}
	if len(r.opened) == 0 {
		return
	}
	deployments := make(map[ids.Deployment]*Deployment, len(st.schemas.Deployments))
	for id, d := range st.schemas.Deployments {
		if deployments[id] = d; r.opened[d] != nil {
			deployments[id] = r.opened[d]
		}
	}
	r.schemas = &Schemas{Version: st.schemas.Version, Deployments: deployments, Services: st.schemas.Services, Kept: st.schemas.Kept}
}

func (r *readable) openSubscriptions(keys *keyring.Keyring, st *state) {
	r.clusters, r.subscriptions = make([]subscription.Cluster, len(st.clusters)), make([]subscription.Subscription, len(st.subscriptions))
	for i := range st.clusters {
		r.clusters[i] = openCluster(keys, st.clusters[i])
	}
	for i := range st.subscriptions {
		r.subscriptions[i] = openSubscription(keys, st.subscriptions[i])
	}
}

// openDeployment returns a deployment with decrypted headers, the same one if none are encrypted.
func openDeployment(keys *keyring.Keyring, d *Deployment) *Deployment {
	headers, err := unseal(keys, deploymentSecrets, string(d.ID), d.AdditionalHeaders)
	if headers == nil {
		return d
	}
	open := *d
	open.AdditionalHeaders, open.Unreadable = headers, err
	return &open
}

func openCluster(keys *keyring.Keyring, c subscription.Cluster) subscription.Cluster {
	if properties, err := unseal(keys, clusterSecrets, c.Name, c.Properties); properties != nil {
		c.Properties, c.Unreadable = properties, err
	}
	return c
}

func openSubscription(keys *keyring.Keyring, s subscription.Subscription) subscription.Subscription {
	if properties, err := unseal(keys, subscriptionSecrets, s.ID, s.Properties); properties != nil {
		s.Properties, s.Unreadable = properties, err
	}
	return s
}

// withKeys returns a view of the same state that is decrypted with other keys. wake notifies the
// readers of v of what may have become readable.
func (v *view) withKeys(keys *keyring.Keyring) (next *view, wake func()) {
	with := *v
	with.keys, with.readable = keys, newReadable(keys, v.state)
	with.changed, with.subscriptionsChanged = make(chan struct{}), make(chan struct{})
	return &with, func() {
		close(v.changed)
		close(v.subscriptionsChanged)
	}
}
