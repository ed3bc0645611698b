package metadata

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"platform/internal/subscription"
)

// Reasons for rejecting a change of Kafka clusters.
var (
	ErrTooManyClusters = errors.New("too many Kafka clusters exist")
	ErrClusterNotFound = errors.New("there is no such Kafka cluster")
	errClusterChanged  = errors.New("the Kafka cluster was changed by another request")
	ErrClusterExists   = errors.New("the Kafka cluster exists")
	ErrClusterInUse    = errors.New("the Kafka cluster is in use")
)

// putKafkaCluster adds or replaces a Kafka cluster.
type putKafkaCluster struct {
	cluster  subscription.Cluster
	expected uint64 // version; 0: it is new
}

// deleteKafkaCluster deletes a Kafka cluster.
type deleteKafkaCluster struct {
	name  string
	force bool // even if subscriptions read from it
}

func (*putKafkaCluster) command()    {}
func (*deleteKafkaCluster) command() {}

// KafkaClusters returns the Kafka clusters that were added by requests, sorted by name. The
// slice is shared.
func (s *Store) KafkaClusters() []subscription.Cluster { return s.source.current().readable.clusters }

// KafkaCluster returns a Kafka cluster that was added by a request; false if there is none.
func (s *Store) KafkaCluster(name string) (subscription.Cluster, bool) {
	clusters := s.KafkaClusters()
	at, known := slices.BinarySearchFunc(clusters, name, compareKafkaCluster)
	if !known {
		return subscription.Cluster{}, false
	}
	return clusters[at], true
}

// storeCluster encrypts the secrets of a cluster and stores it.
func (s *Store) storeCluster(ctx context.Context, cluster subscription.Cluster, expected uint64) (subscription.Cluster, error) {
	stored, _ := s.source.current().kafkaCluster(cluster.Name)
	var err error
	if cluster.Properties, err = s.seal(clusterSecrets, cluster.Name, cluster.Properties, stored.Properties); err != nil {
		return cluster, err
	}
	cluster, err = propose[subscription.Cluster](ctx, s, &putKafkaCluster{cluster, expected})
	return openCluster(s.source.current().keys, cluster), err
}

// CreateKafkaCluster adds a Kafka cluster. It sets its times and version. The error can be
// ErrClusterExists, ErrTooManyClusters, or have code META0009.
func (s *Store) CreateKafkaCluster(ctx context.Context, cluster subscription.Cluster) (subscription.Cluster, error) {
	if err := cluster.Check(); err != nil {
		return cluster, err
	}
	cluster.CreatedAt = fromMillis(s.now().UnixMilli())
	return s.storeCluster(ctx, cluster, 0)
}

// ChangeKafkaCluster replaces the properties of a Kafka cluster by the result of change, which
// gets the current ones and may run several times. The error can be ErrClusterNotFound, have code
// META0009, or be that of change.
func (s *Store) ChangeKafkaCluster(ctx context.Context, name string, change func(map[string]string) (map[string]string, error)) (subscription.Cluster, error) {
	return retryConflict(ctx, errClusterChanged, func() (subscription.Cluster, error) {
		cluster, known := s.KafkaCluster(name)
		if !known {
			return cluster, &rejection{ErrClusterNotFound, ErrClusterNotFound.Error() + ": " + name}
		}
		next := cluster
		var err error
		if next.Properties, err = change(cluster.Properties); err != nil {
			return cluster, err
		}
		checked := next
		checked.Properties = withoutSealed(next.Properties)
		if err := checked.Check(); err != nil {
			return cluster, err
		}
		return s.storeCluster(ctx, next, cluster.Version)
	})
}

// DeleteKafkaCluster deletes a Kafka cluster. The error can be ErrClusterNotFound, or without
// force ErrClusterInUse.
func (s *Store) DeleteKafkaCluster(ctx context.Context, name string, force bool) error {
	_, err := propose[any](ctx, s, &deleteKafkaCluster{name, force})
	return err
}

func (s *state) kafkaCluster(name string) (subscription.Cluster, bool) {
	at, known := slices.BinarySearchFunc(s.clusters, name, compareKafkaCluster)
	if !known {
		return subscription.Cluster{}, false
	}
	return s.clusters[at], true
}

func compareKafkaCluster(c subscription.Cluster, name string) int { return cmp.Compare(c.Name, name) }

// applyPutKafkaCluster returns the Cluster.
func applyPutKafkaCluster(d *draft, at time.Time, cmd *putKafkaCluster) (outcome, error) {
	cluster := cmd.cluster
	pos, known := slices.BinarySearchFunc(d.clusters, cluster.Name, compareKafkaCluster)
	switch {
	case cmd.expected == 0 && known:
		return rejected(ErrClusterExists, "%s", cluster.Name), nil
	case cmd.expected != 0 && !known:
		return rejected(ErrClusterNotFound, "%s", cluster.Name), nil
	case known && d.clusters[pos].Version != cmd.expected:
		return rejected(errClusterChanged, "it is at version %d, not %d", d.clusters[pos].Version, cmd.expected), nil
	case !known && len(d.clusters) >= subscription.MaxClusters:
		return rejected(ErrTooManyClusters, "%d do; delete some", len(d.clusters)), nil
	}
	cluster.Version, cluster.ModifiedAt = cmd.expected+1, at
	d.clusters = placed(d.clusters, pos, known, cluster)
	return outcome{value: cluster}, d.put(tableKafkaClusters, cluster.Name, kafkaClusterToProto(&cluster))
}

func applyDeleteKafkaCluster(d *draft, cmd *deleteKafkaCluster) (outcome, error) {
	pos, known := slices.BinarySearchFunc(d.clusters, cmd.name, compareKafkaCluster)
	if !known {
		return rejected(ErrClusterNotFound, "%s", cmd.name), nil
	}
	reads := func(s subscription.Subscription) bool { return s.Cluster == cmd.name }
	if i := slices.IndexFunc(d.subscriptions, reads); i >= 0 && !cmd.force {
		advice := "delete it first"
		if d.subscriptions[i].Draining {
			advice = "it is being deleted, repeat the request once it is"
		}
		return rejected(ErrClusterInUse, "subscription %s reads from %s; %s, or force the deletion, which stops it", d.subscriptions[i].ID, cmd.name, advice), nil
	}
	d.clusters = slices.Delete(slices.Clone(d.clusters), pos, pos+1)
	d.deleteRecord(tableKafkaClusters, cmd.name)
	return outcome{}, nil
}
