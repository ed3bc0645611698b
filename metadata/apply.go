package metadata

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// ErrNodeConflict means that a node's name and ID belong to two different nodes.
var ErrNodeConflict = errors.New("node name and id do not belong together")

// outcome is the result of a command for its proposer: a value, whose type depends on the
// command, or a rejection.
type outcome struct {
	value     any
	rejection error
}

// applyEntry interprets one committed entry on a draft. If the request already has an
// outcome, the entry returns it and changes nothing.
func applyEntry(d *draft, index uint64, data []byte) (outcome, error) {
	h, cmd, err := decodeEntry(data)
	if err != nil {
		return outcome{}, err
	}
	if o, known, err := d.storedOutcome(h.request); known || err != nil {
		return o, err
	}
	old, first := d.state, len(d.writes)
	o, err := apply(d, index, h.at, cmd)
	if err != nil {
		return outcome{}, err
	}
	if at := slices.IndexFunc(d.writes[first:], write.unstorable); at >= 0 {
		w := d.writes[first+at]
		o = outcome{rejection: &InvalidError{fmt.Sprintf("a name in %s has %d bytes; 1 to %d are possible", w.table, len(w.key), bbolt.MaxKeySize)}}
		d.state, d.writes = old, d.writes[:first]
	}
	if h.action != nil && o.rejection == nil {
		if err := d.recordChange(h.at, h.action, &old, first); err != nil {
			return outcome{}, err
		}
	}
	return o, d.storeOutcome(index, h.request, o)
}

// apply interprets one committed command on a draft. Every replica runs it on the same
// state and must get the same result, so it depends on nothing else. An error means that
// this replica cannot continue.
func apply(d *draft, index uint64, at time.Time, cmd command) (outcome, error) {
	switch cmd := cmd.(type) {
	case *provision:
		return applyProvision(d, at, cmd)
	case *registerNode:
		return applyRegisterNode(d, at, cmd)
	case *registerDeployment:
		return applyRegisterDeployment(d, index, at, cmd)
	case *deleteDeployment:
		return applyDeleteDeployment(d, index, cmd)
	case *updateDeployment:
		return applyUpdateDeployment(d, index, cmd)
	case *modifyService:
		return applyModifyService(d, index, cmd)
	case *removeNode:
		return applyRemoveNode(d, cmd)
	case *drainNode:
		return applyDrainNode(d, cmd)
	case *setPartition:
		return applySetPartition(d, cmd)
	case *setReplication:
		return applySetReplication(d, cmd)
	case *enableFlowControl:
		return applyEnableFlowControl(d)
	case *setFeatureLevel:
		return applySetFeatureLevel(d, at, cmd)
	case *createJob:
		return applyCreateJob(d, cmd)
	case *advanceJob:
		return applyAdvanceJob(d, at, cmd)
	case *stopJob:
		return applyStopJob(d, at, cmd)
	case *createToken:
		return applyCreateToken(d, cmd)
	case *revokeToken:
		return applyRevokeToken(d, cmd)
	case *useTokens:
		return applyUseTokens(d, cmd)
	case *markFailure:
		return applyMarkFailure(d, at, cmd)
	case *recordAction:
		return outcome{}, d.record(&AuditRecord{At: at, Action: cmd.action})
	case *putSubscription:
		return applyPutSubscription(d, at, cmd)
	case *deleteSubscription:
		return applyDeleteSubscription(d, cmd)
	case *putKafkaCluster:
		return applyPutKafkaCluster(d, at, cmd)
	case *deleteKafkaCluster:
		return applyDeleteKafkaCluster(d, cmd)
	case *replaceSecrets:
		return outcome{}, applyReplaceSecrets(d, index, cmd)
	case *putAuthority:
		return applyPutAuthority(d, cmd)
	case *createJoinToken:
		return applyCreateJoinToken(d, at, cmd)
	case *useJoinToken:
		return applyUseJoinToken(d, at, cmd)
	case *revokeJoinToken:
		return applyRevokeJoinToken(d, cmd)
	case *barrier:
		return outcome{}, nil
	case *putRules:
		return applyPutRules(d, at, cmd)
	case *deleteRules:
		return applyDeleteRules(d, cmd)
	}
	return outcome{}, fmt.Errorf("apply %T: unknown command", cmd)
}

// applyProvision returns the current Cluster, which is the first one requested.
func applyProvision(d *draft, at time.Time, cmd *provision) (outcome, error) {
	if d.cluster.ID != "" {
		return outcome{value: d.cluster}, nil
	}
	cluster := cmd.cluster
	cluster.ProvisionedAt = at
	if cluster.FeatureLevel != 0 {
		cluster.FeatureLevelAt = at
	}
	if err := d.setCluster(cluster); err != nil {
		return outcome{}, err
	}
	if len(d.members()) > 1 {
		return outcome{value: cluster}, d.storeTable()
	}
	return outcome{value: cluster}, nil
}

// applyRegisterNode returns the Node with its ID.
func applyRegisterNode(d *draft, at time.Time, cmd *registerNode) (outcome, error) {
	node := cmd.node
	node.RegisteredAt = at
	known, isKnown := d.node(node.Name)
	if isKnown {
		if rejection := admit(known, node, cmd.nameInUse); rejection != nil {
			return *rejection, nil
		}
	}
	if rejection := d.tooOld(node); rejection != nil {
		return *rejection, nil
	}
	if isKnown {
		node.RegisteredAt, node.Draining = known.RegisteredAt, known.Draining
	}
	reused := isKnown && known.Removed // the name of a removed node
	switch {
	case isKnown && !reused && node.ID != 0 && node.ID != known.ID:
		return rejected(ErrNodeConflict, "node %s has id %d, not %d", node.Name, known.ID, node.ID), nil
	case isKnown && !reused:
		node.ID = known.ID
	case node.ID == 0:
		node.ID = d.highestNodeID() + 1
	default:
		if at := slices.IndexFunc(d.nodes, func(n Node) bool { return n.ID == node.ID }); at >= 0 {
			return rejected(ErrNodeConflict, "id %d belongs to node %s", node.ID, d.nodes[at].Name), nil
		}
	}
	if !isKnown || reused {
		if err := d.storeTable(); err != nil {
			return outcome{}, err
		}
	}
	if isKnown && node == known {
		return outcome{value: node}, nil
	}
	if err := d.putNode(node); err != nil {
		return outcome{}, err
	}
	return outcome{value: node}, nil
}

func (s *state) node(name string) (Node, bool) {
	at, known := slices.BinarySearchFunc(s.nodes, name, compareNode)
	if !known {
		return Node{}, false
	}
	return s.nodes[at], true
}

func (s *state) highestNodeID() (highest uint32) {
	for _, n := range s.nodes {
		highest = max(highest, n.ID)
	}
	return highest
}

func compareNode(n Node, name string) int { return strings.Compare(n.Name, name) }
