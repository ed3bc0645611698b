package metadata

import (
	"maps"
	"slices"

	"platform/internal/ids"
)

// state is everything the group has agreed on, at one log index. It is immutable:
// whoever got hold of one may read it for as long as it likes.
type state struct {
	cluster Cluster // zero until provisioned
	nodes   []Node  // sorted by name
	schemas *Schemas
}

func emptyState() *state {
	return &state{schemas: newSchemas(0, nil)}
}

// newSchemas makes the view of a set of deployments, which it takes over.
func newSchemas(version uint64, deployments map[ids.Deployment]*Deployment) *Schemas {
	s := &Schemas{Version: version, Deployments: deployments, Services: map[string]*Service{}}
	// In the order of ids, so that replicas agree even where two deployments claim
	// the same revision.
	for _, id := range slices.Sorted(maps.Keys(deployments)) {
		for _, service := range deployments[id].Services {
			if latest := s.Services[service.Name]; latest == nil || latest.Revision < service.Revision {
				s.Services[service.Name] = service
			}
		}
	}
	return s
}

// draft is a state in the making: apply changes it, and it remembers which records
// have to be written.
type draft struct {
	state
	writes []write
}

// write is one changed record: its value in encoded form, nil to delete it.
type write struct {
	table string
	key   string
	value []byte
}

func newDraft(from *state) *draft { return &draft{state: *from} }

func (d *draft) setCluster(c Cluster) error {
	d.cluster = c
	return d.put(tableCluster, clusterKey, clusterToProto(c))
}

// putNode adds or replaces the node of that name.
func (d *draft) putNode(n Node) error {
	at, known := slices.BinarySearchFunc(d.nodes, n.Name, compareNode)
	d.nodes = slices.Clone(d.nodes)
	if known {
		d.nodes[at] = n
	} else {
		d.nodes = slices.Insert(d.nodes, at, n)
	}
	return d.put(tableNodes, n.Name, nodeToProto(n))
}

// putDeployment adds or replaces the deployment with that id.
func (d *draft) putDeployment(index uint64, dep *Deployment) error {
	deployments := maps.Clone(d.schemas.Deployments)
	if deployments == nil {
		deployments = map[ids.Deployment]*Deployment{}
	}
	deployments[dep.ID] = dep
	d.schemas = newSchemas(index, deployments)
	return d.put(tableDeployments, string(dep.ID), deploymentToProto(dep))
}

func (d *draft) deleteDeployment(index uint64, id ids.Deployment) {
	deployments := maps.Clone(d.schemas.Deployments)
	delete(deployments, id)
	d.schemas = newSchemas(index, deployments)
	d.writes = append(d.writes, write{table: tableDeployments, key: string(id)})
}

func (d *draft) put(table, key string, record interface{ MarshalVT() ([]byte, error) }) error {
	value, err := record.MarshalVT()
	if err != nil {
		return err
	}
	d.writes = append(d.writes, write{table: table, key: key, value: sealed(value)})
	return nil
}
