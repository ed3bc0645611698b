package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"platform/internal/feature"
	"platform/internal/membership"
	"platform/internal/version"
	nodepb "platform/proto/node"
)

const (
	// bootstrapTick is how often a fresh node tries again when it hears of nothing.
	bootstrapTick = 200 * time.Millisecond
	// bootstrapReport is how often it says what it waits for.
	bootstrapReport = 5 * time.Second
	// ballotTimeout and joinTimeout bound one request to another node.
	ballotTimeout = 2 * time.Second
	joinTimeout   = 15 * time.Second
)

// bootstrap makes a fresh node part of a cluster. It returns whether this node is to
// provision one, alone or as the one that the others voted for; otherwise a cluster
// has taken it in.
func (n *Node) bootstrap(ctx context.Context) (found bool, err error) {
	changes, stop := n.members.Watch()
	defer stop()
	tick := time.NewTicker(bootstrapTick)
	defer tick.Stop()
	report := time.Now().Add(bootstrapReport)
	for {
		plan := membership.Decide(n.members.Nodes(), n.cfg.BootstrapExpect, len(n.seeds()) > 0)
		done, found, err := n.bootstrapOnce(ctx, plan)
		if done || isRefused(err) {
			return found, err
		}
		reason := n.waitingFor(plan, err)
		n.waiting.Store(&reason)
		if now := time.Now(); now.After(report) {
			report = now.Add(bootstrapReport)
			n.log.Info("not part of a cluster yet", "reason", reason)
		}
		select {
		case <-changes:
		case <-tick.C:
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return false, ctx.Err()
			}
			return false, fmt.Errorf("no cluster after initialization-timeout (%s); %s", n.cfg.InitializationTimeout, reason)
		}
	}
}

// bootstrapOnce takes the next step. err says why it led to nothing.
func (n *Node) bootstrapOnce(ctx context.Context, plan membership.Plan) (done, found bool, err error) {
	switch plan.Step {
	case membership.Provision, membership.Collect:
		if !n.mayProvision.Load() {
			return false, false, errors.New("the cluster is not provisioned; run `platform cluster provision`, or set auto-provision")
		}
		if plan.Step == membership.Collect {
			if err := n.collect(ctx, plan); err != nil {
				return false, false, err
			}
		}
		return true, true, nil
	case membership.Join:
		if err := n.joinThrough(ctx, plan.Nodes); err != nil {
			return false, false, err
		}
		return true, false, nil
	}
	return false, false, nil
}

// waitingFor tells people what a fresh node waits for.
func (n *Node) waitingFor(plan membership.Plan, err error) string {
	if err != nil {
		return err.Error()
	}
	if plan.Step == membership.Join {
		return "waiting to be taken in"
	}
	if candidate, there := membership.Candidate(n.members.Nodes(), n.cfg.BootstrapExpect); there && !candidate.Self {
		return fmt.Sprintf("waiting for node %s to create the cluster", candidate.Name)
	}
	var names []string
	for _, m := range n.members.Nodes() {
		if m.State == membership.Alive {
			names = append(names, m.Name)
		}
	}
	if n.cfg.BootstrapExpect <= 1 {
		return fmt.Sprintf("waiting for a node of the cluster at %v (metadata-client.addresses); set bootstrap-expect to the number of nodes if they are all new", n.cfg.MetadataClient.Addresses) +
			whyNot(n.members.Unjoined())
	}
	return fmt.Sprintf("waiting for %d nodes (bootstrap-expect), seen %v", n.cfg.BootstrapExpect, names) + whyNot(n.members.Unjoined())
}

// whyNot tells what keeps addresses from being joined.
func whyNot(unjoined map[string]error) string {
	var text strings.Builder
	for _, address := range slices.Sorted(maps.Keys(unjoined)) {
		fmt.Fprintf(&text, "; %s: %v", address, unjoined[address])
	}
	return text.String()
}

// waitsFor is what the node waited for last.
func (n *Node) waitsFor() string {
	if reason := n.waiting.Load(); reason != nil {
		return *reason
	}
	return "waiting for the metadata of the cluster"
}

// collect asks fresh nodes for their votes. Unless there are enough of them, those
// that were given go back.
func (n *Node) collect(ctx context.Context, plan membership.Plan) error {
	ctx, cancel := context.WithTimeout(ctx, ballotTimeout)
	defer cancel()
	refusals := make([]error, len(plan.Nodes))
	var wg sync.WaitGroup
	for i, m := range plan.Nodes {
		wg.Go(func() { refusals[i] = n.askVote(ctx, m, false) })
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
		wg.Go(func() { _ = n.askVote(context.WithoutCancel(ctx), m, true) }) // it stays with this name otherwise, which does no harm
	}
	wg.Wait()
	return fmt.Errorf("%d of %d votes to create the cluster: %w", votes, plan.Votes, errors.Join(refusals...))
}

func (n *Node) askVote(ctx context.Context, m membership.Member, withdraw bool) error {
	req := &nodepb.BallotRequest{ClusterName: n.self.Cluster, Name: n.self.Node, Incarnation: n.self.Incarnation, Withdraw: withdraw}
	ctx, cancel := context.WithTimeout(ctx, ballotTimeout)
	defer cancel()
	var resp *nodepb.BallotResponse
	var err error
	if m.Self {
		resp, err = n.cluster.Ballot(ctx, req)
	} else {
		var peer nodepb.NodeClusterClient
		if peer, err = n.peers.at(m.Address); err == nil {
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

// refusedError is a refusal that asking again does not change.
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

// joinThrough asks nodes of a cluster, one after another, to take this one in.
func (n *Node) joinThrough(ctx context.Context, nodes []membership.Member) error {
	me := n.record()
	req := &nodepb.JoinRequest{
		ClusterName: n.self.Cluster, Protocol: nodeProtocol, Version: version.Version(),
		Name: me.Name, Incarnation: me.Incarnation,
		FabricAddress: me.FabricAddress, IngressAddress: me.IngressAddress, AdminAddress: me.AdminAddress,
		FeatureLevel: uint32(me.FeatureLevel),
	}
	var errs []error
	for _, m := range nodes {
		err := n.askJoin(ctx, m.Address, req)
		if err == nil || isRefused(err) {
			return err
		}
		errs = append(errs, fmt.Errorf("%s: %w", m.Name, err))
	}
	return errors.Join(errs...)
}

func (n *Node) askJoin(ctx context.Context, address string, req *nodepb.JoinRequest) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	peer, err := n.peers.at(address)
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
		refused := &refusedError{reason: fmt.Sprintf("node %s cannot join cluster %q through %s: %s", n.self.Node, n.self.Cluster, address, resp.Refusal)}
		if resp.FeatureLevel != 0 {
			refused.err = feature.CheckCluster(feature.Level(resp.FeatureLevel), time.UnixMilli(resp.FeatureLevelAt))
		}
		return refused
	}
	return nil
}
