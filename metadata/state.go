package metadata

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/internal/subscription"
)

// state is everything that the group has agreed on, at one log index. It is immutable, so
// readers may retain it, except for the index of the audit log, which only the replica uses.
type state struct {
	cluster    Cluster     // zero until provisioned
	nodes      []Node      // sorted by name
	partitions []Partition // the stored ones, sorted by ID
	requests   requests
	schemas    *Schemas
	book       *flowcontrol.Book
	jobs       []Job   // sorted by ID
	tokens     []Token // sorted by ID
	audit      *auditLog

	authority  *Authority  // nil: none
	joinTokens []JoinToken // sorted by ID

	failureMarks []FailureMark // sorted by group

	subscriptions []subscription.Subscription // sorted by ID
	clusters      []subscription.Cluster      // of Kafka, sorted by name
}

// newSchemas creates the view of a set of deployments and of kept options, which it takes ownership of.
func newSchemas(version uint64, deployments map[ids.Deployment]*Deployment, kept map[string]*Options) *Schemas {
	s := &Schemas{Version: version, Deployments: deployments, Services: map[string]*Service{}, Kept: kept}
	// Ordered by ID, so that replicas agree even if two deployments have the same revision.
	for _, id := range slices.Sorted(maps.Keys(deployments)) {
		for _, service := range deployments[id].Services {
			if latest := s.Services[service.Name]; latest == nil || latest.Revision < service.Revision {
				s.Services[service.Name] = service
			}
		}
	}
	return s
}

// draft is a mutable copy of a state. It collects the records that have to be written.
type draft struct {
	state
	writes []write
	// Which readers to notify: something other than requests, the layout, the rule book, or
	// subscriptions and Kafka clusters have changed.
	changed, layoutChanged, rulesChanged, subscriptionsChanged bool
}

// write is one changed record: its encoded value, nil to delete it.
type write struct {
	table string
	key   string
	value []byte
}

// unstorable reports whether the record cannot be stored. As an error of apply, that would stop
// all replicas, again after each restart.
func (w write) unstorable() bool { return w.key == "" || len(w.key) > bbolt.MaxKeySize }

func newDraft(from *state) *draft { return &draft{state: *from} }

func (d *draft) setCluster(c Cluster) error {
	if format := formatOf(c.Level()); format != formatOf(d.cluster.Level()) {
		d.write(write{table: tableMeta, key: versionKey, value: sealedFormat(format)})
	}
	d.cluster = c
	return d.put(tableCluster, clusterKey, clusterToProto(c))
}

// placed returns a copy of a sorted list in which a record is at a position: instead of the record
// there, or inserted before it.
func placed[T any](list []T, at int, instead bool, record T) []T {
	list = slices.Clone(list)
	if instead {
		list[at] = record
		return list
	}
	return slices.Insert(list, at, record)
}

// putNode adds or replaces the node with that name.
func (d *draft) putNode(n Node) error {
	at, known := slices.BinarySearchFunc(d.nodes, n.Name, compareNode)
	d.nodes = placed(d.nodes, at, known, n)
	return d.put(tableNodes, n.Name, nodeToProto(n))
}

// putPartition adds or replaces the table entry of a partition.
func (d *draft) putPartition(p Partition) error {
	at, stored := slices.BinarySearchFunc(d.partitions, p.ID, comparePartition)
	d.partitions = placed(d.partitions, at, stored, p)
	return d.put(tablePartitions, partitionKey(p.ID), partitionToProto(p))
}

// partitionKey returns a key that sorts numerically.
func partitionKey(id uint32) string { return fmt.Sprintf("%05d", id) }

func comparePartition(p Partition, id uint32) int { return cmp.Compare(p.ID, id) }

// putDeployment adds or replaces the deployment with that ID.
func (d *draft) putDeployment(index uint64, dep *Deployment) error {
	deployments := maps.Clone(d.schemas.Deployments)
	if deployments == nil {
		deployments = map[ids.Deployment]*Deployment{}
	}
	deployments[dep.ID] = dep
	d.schemas = newSchemas(index, deployments, d.schemas.Kept)
	return d.put(tableDeployments, string(dep.ID), deploymentToProto(dep))
}

func (d *draft) deleteDeployment(index uint64, id ids.Deployment) {
	deployments := maps.Clone(d.schemas.Deployments)
	delete(deployments, id)
	d.schemas = newSchemas(index, deployments, d.schemas.Kept)
	d.deleteRecord(tableDeployments, string(id))
}

func (d *draft) put(table, key string, record interface{ MarshalVT() ([]byte, error) }) error {
	value, err := record.MarshalVT()
	if err != nil {
		return err
	}
	d.write(write{table: table, key: key, value: sealed(value)})
	return nil
}

func (d *draft) deleteRecord(table, key string) { d.write(write{table: table, key: key}) }

func (d *draft) write(w write) {
	d.writes = append(d.writes, w)
	switch w.table {
	case tableRequests, tableJobs, tableTokens, tableJoinTokens, tableAuthority, tableAudit, tableAuditNodes, tableFailureMarks:
		return // readers poll these
	}
	d.changed = true
	switch w.table {
	case tableDeployments, tableKeptOptions:
	case tableRuleBook, tableRules:
		d.rulesChanged = true
	case tableSubscriptions, tableKafkaClusters:
		d.subscriptionsChanged = true
	default:
		d.layoutChanged = true
	}
}
