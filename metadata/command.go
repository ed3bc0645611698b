package metadata

import (
	"fmt"
	"slices"
	"time"

	"platform/internal/ids"
	pb "platform/proto/metadata"
)

// entryVersion is the format of log entries that this server writes, and the
// newest that it reads.
const entryVersion = 1

// command is a log command of the metadata group: one of the types below. All
// that depends on clock or chance, such as new ids, is part of it.
type command interface{ command() }

// provision creates the cluster, unless it exists.
type provision struct{ cluster Cluster }

// registerNode adds a node or updates the known one of that name.
type registerNode struct{ node Node }

// registerDeployment adds a deployment or replaces the one at its address.
type registerDeployment struct{ Registration }

// updateDeployment changes a deployment in place.
type updateDeployment struct{ Update }

// modifyService changes options of the latest revision of a service.
type modifyService struct {
	name    string
	options Options // those that are not nil
}

// deleteDeployment removes a deployment.
type deleteDeployment struct{ id ids.Deployment }

func (*provision) command()          {}
func (*registerNode) command()       {}
func (*registerDeployment) command() {}
func (*deleteDeployment) command()   {}
func (*updateDeployment) command()   {}
func (*modifyService) command()      {}

// encodeEntry writes one log entry.
func encodeEntry(at time.Time, cmd command) ([]byte, error) {
	entry := &pb.Entry{Version: entryVersion, TimeMs: at.UnixMilli()}
	switch cmd := cmd.(type) {
	case *provision:
		entry.Command = &pb.Entry_ProvisionCluster{ProvisionCluster: &pb.ProvisionCluster{Cluster: clusterToProto(cmd.cluster)}}
	case *registerNode:
		entry.Command = &pb.Entry_RegisterNode{RegisterNode: &pb.RegisterNode{Node: nodeToProto(cmd.node)}}
	case *registerDeployment:
		entry.Command = &pb.Entry_RegisterDeployment{RegisterDeployment: &pb.RegisterDeployment{
			Deployment: deploymentToProto(cmd.Deployment), Force: cmd.Force, Breaking: cmd.Breaking,
			RoutingHeaders: slices.Clone(cmd.RoutingHeaders),
		}}
	case *deleteDeployment:
		entry.Command = &pb.Entry_DeleteDeployment{DeleteDeployment: &pb.DeleteDeployment{Id: string(cmd.id)}}
	case *updateDeployment:
		entry.Command = &pb.Entry_UpdateDeployment{UpdateDeployment: &pb.UpdateDeployment{
			Deployment: deploymentToProto(cmd.Deployment), Overwrite: cmd.Overwrite,
		}}
	case *modifyService:
		entry.Command = &pb.Entry_ModifyService{ModifyService: &pb.ModifyService{Name: cmd.name, Options: optionsToProto(&cmd.options)}}
	default:
		return nil, fmt.Errorf("encode %T: unknown command", cmd)
	}
	return entry.MarshalVT()
}

// decodeEntry reads one log entry. It keeps no part of data.
func decodeEntry(data []byte) (time.Time, command, error) {
	var entry pb.Entry
	if err := entry.UnmarshalVT(data); err != nil {
		return time.Time{}, nil, fmt.Errorf("decode metadata entry: %w", err)
	}
	if entry.Version == 0 || entry.Version > entryVersion {
		return time.Time{}, nil, fmt.Errorf("decode metadata entry: version %d, this server knows 1 to %d", entry.Version, entryVersion)
	}
	at := fromMillis(entry.TimeMs)
	switch cmd := entry.Command.(type) {
	case *pb.Entry_ProvisionCluster:
		return at, &provision{clusterFromProto(cmd.ProvisionCluster.GetCluster())}, nil
	case *pb.Entry_RegisterNode:
		return at, &registerNode{nodeFromProto(cmd.RegisterNode.GetNode())}, nil
	case *pb.Entry_RegisterDeployment:
		body := cmd.RegisterDeployment
		return at, &registerDeployment{Registration{
			Deployment: deploymentFromProto(body.GetDeployment()), Force: body.GetForce(), Breaking: body.GetBreaking(),
			RoutingHeaders: body.GetRoutingHeaders(),
		}}, nil
	case *pb.Entry_DeleteDeployment:
		return at, &deleteDeployment{ids.Deployment(cmd.DeleteDeployment.GetId())}, nil
	case *pb.Entry_UpdateDeployment:
		body := cmd.UpdateDeployment
		return at, &updateDeployment{Update{Deployment: deploymentFromProto(body.GetDeployment()), Overwrite: body.GetOverwrite()}}, nil
	case *pb.Entry_ModifyService:
		return at, &modifyService{cmd.ModifyService.GetName(), optionsFromProto(cmd.ModifyService.GetOptions())}, nil
	}
	return time.Time{}, nil, fmt.Errorf("decode metadata entry: unknown command")
}
