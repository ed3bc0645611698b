package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"platform/internal/cluster/membership"
	"platform/internal/feature"
	"platform/internal/units"
	"platform/internal/version"
	"platform/metadata"
	nodepb "platform/proto/node"
)

const (
	// bootstrapTick is the retry interval of a fresh node when nothing changes.
	bootstrapTick = 200 * time.Millisecond
	// bootstrapReport is the interval of log messages about what it waits for.
	bootstrapReport = 5 * time.Second
	// ballotTimeout and joinTimeout bound one request to another node.
	ballotTimeout = 2 * time.Second
	joinTimeout   = 15 * time.Second
)

// Bootstrap makes a fresh node part of a cluster.
type Bootstrap struct {
	Record       metadata.Node  // of this node
	Expect       int            // bootstrap-expect
	Seeds        []string       // addresses of other nodes
	Addresses    []string       // metadata-client.addresses, for messages
	Timeout      units.Duration // initialization-timeout, for messages
	Server       *Server
	Peers        *Peers
	Members      *membership.Members
	Provisioning *Provisioning
	Report       func(reason string) // called with what the node waits for
	Log          *slog.Logger
}

// Run returns true if this node must provision a cluster, alone or as the one that the others
// voted for; otherwise a cluster has accepted it.
func (b *Bootstrap) Run(ctx context.Context) (found bool, err error) {
	changes, stop := b.Members.Watch()
	defer stop()
	tick := time.NewTicker(bootstrapTick)
	defer tick.Stop()
	report := time.Now().Add(bootstrapReport)
	for {
		plan := membership.Decide(b.Members.Nodes(), b.Expect, len(b.Seeds) > 0)
		done, found, err := b.step(ctx, plan)
		if done || isRefused(err) {
			return found, err
		}
		reason := b.waitingFor(plan, err)
		b.Report(reason)
		if now := time.Now(); now.After(report) {
			report = now.Add(bootstrapReport)
			b.Log.Info("not part of a cluster yet", "reason", reason)
		}
		select {
		case <-changes:
		case <-tick.C:
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return false, ctx.Err()
			}
			return false, fmt.Errorf("no cluster after initialization-timeout (%s); %s", b.Timeout, reason)
		}
	}
}

// step takes the next step. err is why it had no effect.
func (b *Bootstrap) step(ctx context.Context, plan membership.Plan) (done, found bool, err error) {
	switch plan.Step {
	case membership.Provision, membership.Collect:
		if !b.Provisioning.Allowed() {
			return false, false, errors.New("the cluster is not provisioned; run `platform cluster provision`, or set auto-provision")
		}
		if plan.Step == membership.Collect {
			if err := b.collect(ctx, plan); err != nil {
				return false, false, err
			}
		}
		return true, true, nil
	case membership.Join:
		if err := b.joinThrough(ctx, plan.Nodes); err != nil {
			return false, false, err
		}
		return true, false, nil
	}
	return false, false, nil
}

// waitingFor describes what a fresh node waits for.
func (b *Bootstrap) waitingFor(plan membership.Plan, err error) string {
	if err != nil {
		return err.Error()
	}
	if plan.Step == membership.Join {
		return "waiting to be accepted by the cluster"
	}
	if candidate, there := membership.Candidate(b.Members.Nodes(), b.Expect); there && !candidate.Self {
		return fmt.Sprintf("waiting for node %s to create the cluster", candidate.Name)
	}
	var names []string
	for _, m := range b.Members.Nodes() {
		if m.State == membership.Alive {
			names = append(names, m.Name)
		}
	}
	if b.Expect <= 1 {
		return fmt.Sprintf("waiting for a node of the cluster at %v (metadata-client.addresses); set bootstrap-expect to the number of nodes if they are all new", b.Addresses) +
			joinFailures(b.Members.Unjoined())
	}
	return fmt.Sprintf("waiting for %d nodes (bootstrap-expect), seen %v", b.Expect, names) + joinFailures(b.Members.Unjoined())
}

// joinFailures describes why addresses could not be joined.
func joinFailures(unjoined map[string]error) string {
	var text strings.Builder
	for _, address := range slices.Sorted(maps.Keys(unjoined)) {
		reason := strings.ReplaceAll(unjoined[address].Error(), "\n", "; ") // of several addresses of a host
		fmt.Fprintf(&text, "; %s: %s", address, reason)
	}
	return text.String()
}

// collect requests the votes of fresh nodes. If there are not enough, it returns the votes
// that it got.
func (b *Bootstrap) collect(ctx context.Context, plan membership.Plan) error {
	ctx, cancel := context.WithTimeout(ctx, ballotTimeout)
	defer cancel()
	refusals := make([]error, len(plan.Nodes))
	var wg sync.WaitGroup
	for i, m := range plan.Nodes {
		wg.Go(func() { refusals[i] = b.requestVote(ctx, m, false) })
	}
	wg.Wait()
	votes := 0
	for _, refusal := range refusals {
		if refusal == nil {
			votes++
		}
	}
	if votes >= plan.Votes {
		return nil
	}
	for _, m := range plan.Nodes {
		wg.Go(func() { _ = b.requestVote(context.WithoutCancel(ctx), m, true) }) // if this fails, the node keeps its vote for this one, which is harmless
	}
	wg.Wait()
	return fmt.Errorf("%d of %d votes to create the cluster: %w", votes, plan.Votes, errors.Join(refusals...))
}

func (b *Bootstrap) requestVote(ctx context.Context, m membership.Member, withdraw bool) error {
	req := &nodepb.BallotRequest{ClusterName: b.Server.self.Cluster, Name: b.Server.self.Node, Incarnation: b.Server.self.Incarnation, Withdraw: withdraw}
	ctx, cancel := context.WithTimeout(ctx, ballotTimeout)
	defer cancel()
	var resp *nodepb.BallotResponse
	var err error
	if m.Self {
		resp, err = b.Server.Ballot(ctx, req)
	} else {
		var peer nodepb.NodeClusterClient
		if peer, err = b.Peers.At(m.Address); err == nil {
			resp, err = peer.Ballot(ctx, req)
		}
	}
	if err == nil && resp.Refusal != "" {
		err = errors.New(resp.Refusal)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	return nil
}

// refusedError is a rejection that a retry does not change.
type refusedError struct {
	reason string
	err    error // cause, may be nil
}

func (e *refusedError) Error() string { return e.reason }
func (e *refusedError) Unwrap() error { return e.err }

func isRefused(err error) bool {
	_, refused := errors.AsType[*refusedError](err)
	return refused
}

// joinThrough requests membership from nodes of a cluster, one after another.
func (b *Bootstrap) joinThrough(ctx context.Context, nodes []membership.Member) error {
	me := b.Record
	req := &nodepb.JoinRequest{
		ClusterName: b.Server.self.Cluster, Protocol: Protocol, Version: version.Version(),
		Name: me.Name, Incarnation: me.Incarnation,
		FabricAddress: me.FabricAddress, IngressAddress: me.IngressAddress, AdminAddress: me.AdminAddress,
		FeatureLevel: uint32(me.FeatureLevel),
	}
	var errs []error
	for _, m := range nodes {
		err := b.requestJoin(ctx, m.Address, req)
		if err == nil || isRefused(err) {
			return err
		}
		errs = append(errs, fmt.Errorf("%s: %w", m.Name, err))
	}
	return errors.Join(errs...)
}

func (b *Bootstrap) requestJoin(ctx context.Context, address string, req *nodepb.JoinRequest) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	peer, err := b.Peers.At(address)
	if err != nil {
		return err
	}
	resp, err := peer.Join(ctx, req)
	switch {
	case status.Code(err) == codes.Unavailable:
		return errors.New(status.Convert(err).Message())
	case err != nil:
		return err
	case resp.Refusal != "":
		refused := &refusedError{reason: fmt.Sprintf("node %s cannot join cluster %q through %s: %s", b.Server.self.Node, b.Server.self.Cluster, address, resp.Refusal)}
		if resp.FeatureLevel != 0 {
			refused.err = feature.CheckCluster(feature.Level(resp.FeatureLevel), time.UnixMilli(resp.FeatureLevelAt))
		}
		return refused
	}
	return nil
}
