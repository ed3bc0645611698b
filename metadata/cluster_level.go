package metadata

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/errcode"
	"platform/internal/feature"
)

var (
	// ErrNodeTooOld means that a node does not support the cluster's feature level.
	ErrNodeTooOld = errors.New("node is too old for the cluster")
	// ErrMembersChanged means that nodes joined or left while the feature level was being
	// raised.
	ErrMembersChanged = errors.New("members of the cluster have changed")
)

// FeatureLevel returns the cluster's feature level as known to this node. It never
// decreases and is supported by this server.
func (s *Store) FeatureLevel() feature.Level {
	return max(s.source.current().cluster.FeatureLevel, feature.Level1) // without copying the record: leaders call this for each command
}

// need is the feature level that a command needs, and the part of it that does.
type need struct {
	level feature.Level
	what  string
}

// levelOf returns the level that readers of a command must support. A new command or field
// adds a case.
func levelOf(cmd command) need {
	switch cmd := cmd.(type) {
	case *createJob, *advanceJob, *stopJob:
		return need{feature.Level4, "a job"}
	case *createToken, *revokeToken, *useTokens:
		return need{feature.Level4, "a token"}
	case *markFailure:
		return need{feature.Level4, "a mark of a failure group"}
	case *recordAction:
		return need{feature.Level4, "the audit log"}
	case *putSubscription, *deleteSubscription:
		return need{feature.Level4, "an event subscription"}
	case *putKafkaCluster, *deleteKafkaCluster:
		return need{feature.Level4, "a Kafka cluster"}
	case *registerDeployment:
		if cmd.Deployment.sealedFor() {
			return need{feature.Level4, "an encrypted secret"}
		}
		if cmd.Limit > 0 {
			return need{feature.Level4, "a limit of the number of deployments"}
		}
	case *updateDeployment:
		if len(cmd.expected) > 0 {
			return need{feature.Level4, "an update of a certain state of a deployment"}
		}
		if cmd.Deployment.sealedFor() {
			return need{feature.Level4, "an encrypted secret"}
		}
	case *replaceSecrets:
		return need{feature.Level4, "an encrypted secret"}
	case *putAuthority:
		return need{feature.Level4, "the authority of the cluster"}
	case *createJoinToken, *useJoinToken, *revokeJoinToken:
		return need{feature.Level4, "a join token"}
	case *barrier:
		return need{feature.Level4, "a confirmed read"}
	case *modifyService:
		if cmd.options.IngressAuth != nil || cmd.options.ForwardHeaders != nil {
			return need{feature.Level4, "the authentication of callers of a service"}
		}
	case *putRules:
		if cmd.renew {
			return need{feature.Level4, "a rule book that is renewed"}
		}
	case *setFeatureLevel:
		return need{max(cmd.level, feature.Level2), "the cluster's feature level"}
	case *provision:
		if cmd.cluster.FeatureLevel != 0 {
			return need{cmd.cluster.FeatureLevel, "a cluster with a feature level"}
		}
	case *registerNode:
		if cmd.node.FeatureLevel != 0 {
			return need{feature.Level2, "the feature level of a node"}
		}
	}
	return need{level: feature.Level1}
}

// mayPropose rejects commands that members may be unable to read. Commands that set the
// level are exempt.
func (s *Store) mayPropose(cmd command) error {
	switch cmd.(type) {
	case *setFeatureLevel, *provision:
		return nil
	}
	n := levelOf(cmd)
	return feature.Require(s.FeatureLevel(), n.level, n.what)
}

// unsupported adds the error code of a server that is too old.
func unsupported(err error) error { return errcode.New(errcode.META0018, "%w", err) }

// checkLevel rejects metadata of a cluster whose level this server does not support.
func checkLevel(c Cluster) error {
	if err := feature.CheckCluster(c.Level(), c.FeatureLevelAt); err != nil {
		return unsupported(err)
	}
	return nil
}

// CheckJoin returns an *errcode.Error with META0018 if a server that announces a level
// cannot be a member of the cluster.
func (c Cluster) CheckJoin(announced uint32) error {
	if err := feature.Check(feature.Announced(announced), c.Level(), c.FeatureLevelAt); err != nil {
		return unsupported(err)
	}
	return nil
}

// tooOld returns why a node may not be registered at the cluster's level, nil if it may.
func (d *draft) tooOld(node Node) *outcome {
	level := d.cluster.Level()
	if supported := feature.Announced(uint32(node.FeatureLevel)); supported < level {
		rejection := rejected(ErrNodeTooOld, "node %s supports feature level %d; the cluster is at %d since %s; upgrade its server",
			node.Name, supported, level, d.cluster.FeatureLevelAt.UTC().Format(time.RFC3339))
		return &rejection
	}
	return nil
}

// applySetFeatureLevel returns the Cluster.
func applySetFeatureLevel(d *draft, at time.Time, cmd *setFeatureLevel) (outcome, error) {
	if d.cluster.ID == "" {
		return outcome{rejection: &InvalidError{"the cluster is not provisioned"}}, nil
	}
	if cmd.level <= d.cluster.Level() {
		return outcome{value: d.cluster}, nil
	}
	if !slices.Equal(cmd.members, serverIDs(d.members())) {
		return rejected(ErrMembersChanged, "feature level %d was found to be supported by other members than there are now", cmd.level), nil
	}
	cluster := d.cluster
	cluster.FeatureLevel, cluster.FeatureLevelAt = cmd.level, at
	return outcome{value: cluster}, d.setCluster(cluster)
}

// serverIDs returns the Raft server IDs of nodes, sorted.
func serverIDs(nodes []Node) []string {
	ids := make([]string, len(nodes))
	for i, n := range nodes {
		ids[i] = string(n.ServerID())
	}
	slices.Sort(ids)
	return ids
}

// Announcement is what a running node reports about feature levels.
type Announcement struct {
	Server    raft.ServerID
	Supported feature.Level
	Hold      bool // its configuration holds the cluster's level
}

// LevelPlan is how far the cluster's feature level can rise, and why no further.
type LevelPlan struct {
	Level feature.Level // of the cluster
	// Next is what all members support; Level if that is not known to be higher.
	Next feature.Level
	// Highest is the highest level that any member supports.
	Highest feature.Level
	// Waiting lists, for operators, why the level is not Highest: members that do not
	// respond, are older, or hold the level.
	Waiting []string
	// Held means that a member holds the level: only an operator's request raises it.
	Held bool

	members []string
}

// PlanLevel computes the plan from the announcements of members, by node ID.
func PlanLevel(l *Layout, announced map[uint32]Announcement) LevelPlan {
	p := LevelPlan{Level: l.Cluster.Level(), members: serverIDs(l.Nodes)}
	p.Highest = p.Level
	for _, a := range announced {
		p.Highest = max(p.Highest, a.Supported)
	}
	if len(l.Nodes) == 0 || p.Highest == p.Level {
		p.Next = p.Level
		return p
	}
	p.Next = p.Highest
	for _, n := range l.Nodes {
		a, answers := announced[n.ID]
		switch {
		case !answers || a.Server != n.ServerID():
			p.Next = p.Level
			p.Waiting = append(p.Waiting, fmt.Sprintf("node %s does not respond; start or remove it", n.Name))
		case a.Supported < p.Highest:
			p.Next = min(p.Next, max(a.Supported, p.Level))
			p.Waiting = append(p.Waiting, fmt.Sprintf("node %s supports feature level %d; upgrade it", n.Name, a.Supported))
		}
		if answers && a.Hold {
			p.Held = true
			p.Waiting = append(p.Waiting, fmt.Sprintf("node %s holds the level (feature-level-hold)", n.Name))
		}
	}
	return p
}

// RaiseFeatureLevel raises the cluster's feature level to the level that all members of a
// plan support. Servers that do not support it cannot be used afterwards. The error can be
// ErrMembersChanged.
func (s *Store) RaiseFeatureLevel(ctx context.Context, p LevelPlan) (Cluster, error) {
	return propose[Cluster](ctx, s, &setFeatureLevel{level: p.Next, members: p.members})
}

// controlLevel raises the feature level once all members support a higher one.
func (s *Store) controlLevel(ctx context.Context, v *view, obs Observer) error {
	if v.cluster.ID == "" || v.cluster.Level() >= feature.Supported() {
		return nil
	}
	plan := PlanLevel(v.layout, obs.Announcements(ctx))
	if plan.Held || plan.Next <= plan.Level {
		return nil
	}
	cluster, err := s.RaiseFeatureLevel(ctx, plan)
	if errors.Is(err, ErrMembersChanged) {
		return nil // decided again in the next round
	}
	if err != nil {
		return fmt.Errorf("raise the feature level: %w", err)
	}
	s.replica.log.Info("feature level of the cluster raised; servers that do not support it can no longer be used",
		"feature_level", uint32(cluster.Level()), "before", uint32(plan.Level))
	return nil
}
