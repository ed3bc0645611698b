package enroll

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"platform/internal/certs"
)

const (
	// checkInterval is how often the time is compared with that of the next renewal. A timer
	// would be late when the machine was suspended.
	checkInterval = time.Second
	// renewMinDelay and renewMaxDelay bound the delay after a renewal that failed.
	renewMinDelay, renewMaxDelay = time.Second, 5 * time.Minute
)

// Renewer replaces the certificate of a node before it expires.
type Renewer struct {
	Files *Files
	// Current is the certificate in use; it reads changed files again.
	Current *certs.Store
	// Request requests a certificate from other members.
	Request func(ctx context.Context, signingRequest []byte) (certificate []byte, err error)
	// Registry is the part of the metadata with the authority; nil: the authority is not replaced.
	Registry Registry
	Log      *slog.Logger
}

// Run renews the certificate when a third of its validity is left, until ctx ends.
func (r *Renewer) Run(ctx context.Context) error {
	var rotation *Rotation
	if r.Registry != nil {
		rotation = &Rotation{Files: r.Files, Current: r.Current, Registry: r.Registry, Renew: r.renew, Log: r.Log}
	}
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	spread := rand.Float64() //nolint:gosec // so that the nodes do not all renew simultaneously
	var retryAt time.Time
	for delay := renewMinDelay; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		now := time.Now()
		due := r.due(spread)
		if rotation != nil {
			rotation.check(ctx, now)
			if rotation.pending() { // other members may not trust the next certificate yet
				due = due.Add(r.Current.Expires().Sub(due) / 2)
			}
		}
		if now.Before(due) || now.Before(retryAt) {
			continue
		}
		err := r.renew(ctx)
		if err == nil {
			delay, retryAt = renewMinDelay, time.Time{}
			continue
		}
		if ctx.Err() == nil {
			r.Log.Warn("certificate of this node not renewed, retrying", "err", err, "expires", r.Current.Expires(), "retry_in", delay)
		}
		retryAt, delay = time.Now().Add(delay), min(2*delay, renewMaxDelay)
	}
}

// due returns when to renew: up to a tenth of the remaining time before a third of the validity is
// left.
func (r *Renewer) due(spread float64) time.Time {
	leaf := r.Current.Current().Certificate.Leaf
	at := certs.RenewAt(leaf)
	return at.Add(-time.Duration(spread * float64(leaf.NotAfter.Sub(at)) / 10))
}

func (r *Renewer) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	key, err := certs.NewKey()
	if err != nil {
		return err
	}
	request, err := certs.NewSigningRequest(key, r.Files.cluster, r.Files.node)
	if err != nil {
		return err
	}
	certificate, err := r.Request(ctx, request)
	if err != nil {
		return err
	}
	if err := r.Files.renew(key, certificate); err != nil {
		return fmt.Errorf("store the certificate: %w", err)
	}
	return r.Current.Reload()
}
