package metadata

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"platform/internal/feature"
	"platform/internal/ids"
	pb "platform/proto/metadata"
)

// command is a log command of the metadata group: one of the types below. Everything that
// depends on clocks or randomness, such as new IDs, is part of it.
type command interface{ command() }

// provision creates the cluster, unless it exists.
type provision struct{ cluster Cluster }

// registerNode adds a node or updates the existing one with that name.
type registerNode struct {
	node      Node
	nameInUse bool // reject if the name belongs to another incarnation
}

// removeNode removes a node from the cluster.
type removeNode struct {
	id    uint32
	force bool // even if it has replicas
}

// drainNode sets whether the replicas of a node are to be moved away.
type drainNode struct {
	id       uint32
	draining bool
}

// setPartition replaces a partition's entry in the table if it has the expected version.
type setPartition struct {
	partition Partition
	expected  uint64
}

// setReplication changes the desired number of replicas per partition.
type setReplication struct{ replication uint32 }

// enableFlowControl records that flow control is enabled on all partitions.
type enableFlowControl struct{}

// setFeatureLevel raises the cluster's feature level if the members are still those that
// are known to support it.
type setFeatureLevel struct {
	level   feature.Level
	members []string // server IDs, sorted
}

// registerDeployment adds a deployment or replaces the one at its address.
type registerDeployment struct{ Registration }

// updateDeployment changes a deployment in place.
type updateDeployment struct {
	Update
	expected []byte // the connection that it changes; empty: any
}

// modifyService changes options of the latest revision of a service.
type modifyService struct {
	name    string
	options Options // the non-nil ones
}

// deleteDeployment removes a deployment.
type deleteDeployment struct{ id ids.Deployment }

func (*provision) command()          {}
func (*registerNode) command()       {}
func (*registerDeployment) command() {}
func (*deleteDeployment) command()   {}
func (*updateDeployment) command()   {}
func (*modifyService) command()      {}
func (*removeNode) command()         {}
func (*drainNode) command()          {}
func (*setPartition) command()       {}
func (*setReplication) command()     {}
func (*enableFlowControl) command()  {}
func (*setFeatureLevel) command()    {}

// header is the part of an entry apart from its command.
type header struct {
	at time.Time // the proposer's clock
	// request identifies the request; retries of it have the same. Legacy entries have
	// none.
	request string
	// action is what a client requested, for the audit log; nil: nothing.
	action *Action
}

// encodeEntry encodes one log entry.
func encodeEntry(h header, cmd command) ([]byte, error) {
	entry := &pb.Entry{Version: uint32(levelOf(cmd).level), TimeMs: h.at.UnixMilli(), Request: []byte(h.request)}
	if h.action != nil {
		entry.Version = max(entry.Version, uint32(feature.Level4))
		entry.Action = actionToProto(h.action)
	}
	switch cmd := cmd.(type) {
	case *provision:
		entry.Command = &pb.Entry_ProvisionCluster{ProvisionCluster: &pb.ProvisionCluster{Cluster: clusterToProto(cmd.cluster)}}
	case *registerNode:
		entry.Command = &pb.Entry_RegisterNode{RegisterNode: &pb.RegisterNode{Node: nodeToProto(cmd.node), NameInUse: cmd.nameInUse}}
	case *registerDeployment:
		entry.Command = &pb.Entry_RegisterDeployment{RegisterDeployment: &pb.RegisterDeployment{
			Deployment: deploymentToProto(cmd.Deployment), Force: cmd.Force, Breaking: cmd.Breaking,
			RoutingHeaders: slices.Clone(cmd.RoutingHeaders), Limit: uint32(cmd.Limit),
		}}
	case *deleteDeployment:
		entry.Command = &pb.Entry_DeleteDeployment{DeleteDeployment: &pb.DeleteDeployment{Id: string(cmd.id)}}
	case *updateDeployment:
		entry.Command = &pb.Entry_UpdateDeployment{UpdateDeployment: &pb.UpdateDeployment{
			Deployment: deploymentToProto(cmd.Deployment), Overwrite: cmd.Overwrite, Expected: cmd.expected,
		}}
	case *modifyService:
		entry.Command = &pb.Entry_ModifyService{ModifyService: &pb.ModifyService{Name: cmd.name, Options: optionsToProto(&cmd.options)}}
	case *removeNode:
		entry.Command = &pb.Entry_RemoveNode{RemoveNode: &pb.RemoveNode{Id: cmd.id, Force: cmd.force}}
	case *drainNode:
		entry.Command = &pb.Entry_DrainNode{DrainNode: &pb.DrainNode{Id: cmd.id, Draining: cmd.draining}}
	case *setPartition:
		entry.Command = &pb.Entry_SetPartition{SetPartition: &pb.SetPartition{
			Partition: partitionToProto(cmd.partition), ExpectedVersion: cmd.expected,
		}}
	case *setReplication:
		entry.Command = &pb.Entry_SetReplication{SetReplication: &pb.SetReplication{Replication: cmd.replication}}
	case *enableFlowControl:
		entry.Command = &pb.Entry_EnableFlowControl{EnableFlowControl: &pb.EnableFlowControl{}}
	case *setFeatureLevel:
		entry.Command = &pb.Entry_SetFeatureLevel{SetFeatureLevel: &pb.SetFeatureLevel{Level: uint32(cmd.level), Members: cmd.members}}
	case *createJob:
		entry.Command = &pb.Entry_CreateJob{CreateJob: &pb.CreateJob{Job: jobToProto(&cmd.job)}}
	case *advanceJob:
		job := &pb.Job{Id: cmd.id}
		progressToProto(&cmd.progress, job)
		entry.Command = &pb.Entry_AdvanceJob{AdvanceJob: &pb.AdvanceJob{Job: job, ExpectedVersion: cmd.expected}}
	case *stopJob:
		entry.Command = &pb.Entry_StopJob{StopJob: &pb.StopJob{Id: cmd.id}}
	case *createToken:
		entry.Command = &pb.Entry_CreateToken{CreateToken: &pb.CreateToken{Token: tokenToProto(&cmd.token)}}
	case *revokeToken:
		entry.Command = &pb.Entry_RevokeToken{RevokeToken: &pb.RevokeToken{Id: cmd.id}}
	case *useTokens:
		entry.Command = &pb.Entry_UseTokens{UseTokens: &pb.UseTokens{Uses: usesToProto(cmd.uses)}}
	case *markFailure:
		entry.Command = &pb.Entry_MarkFailure{MarkFailure: markEditToProto(&cmd.edit)}
	case *recordAction:
		entry.Command = &pb.Entry_RecordAction{RecordAction: &pb.RecordAction{Action: actionToProto(&cmd.action)}}
	case *putSubscription:
		entry.Command = &pb.Entry_PutSubscription{PutSubscription: &pb.PutSubscription{
			Subscription: subscriptionToProto(&cmd.subscription), ExpectedVersion: cmd.expected,
		}}
	case *deleteSubscription:
		entry.Command = &pb.Entry_DeleteSubscription{DeleteSubscription: &pb.DeleteSubscription{Id: cmd.id}}
	case *putKafkaCluster:
		entry.Command = &pb.Entry_PutKafkaCluster{PutKafkaCluster: &pb.PutKafkaCluster{
			Cluster: kafkaClusterToProto(&cmd.cluster), ExpectedVersion: cmd.expected,
		}}
	case *deleteKafkaCluster:
		entry.Command = &pb.Entry_DeleteKafkaCluster{DeleteKafkaCluster: &pb.DeleteKafkaCluster{Name: cmd.name, Force: cmd.force}}
	case *replaceSecrets:
		entry.Command = &pb.Entry_ReplaceSecrets{ReplaceSecrets: replaceSecretsToProto(cmd)}
	case *putAuthority:
		entry.Command = &pb.Entry_PutAuthority{PutAuthority: &pb.PutAuthority{Authority: authorityToProto(&cmd.authority), Keep: cmd.keep}}
	case *createJoinToken:
		entry.Command = &pb.Entry_CreateJoinToken{CreateJoinToken: &pb.CreateJoinToken{Token: joinTokenToProto(&cmd.token)}}
	case *useJoinToken:
		entry.Command = &pb.Entry_UseJoinToken{UseJoinToken: &pb.UseJoinToken{Id: cmd.id, Hash: cmd.hash, Node: cmd.node, Key: cmd.key}}
	case *revokeJoinToken:
		entry.Command = &pb.Entry_RevokeJoinToken{RevokeJoinToken: &pb.RevokeJoinToken{Id: cmd.id}}
	case *barrier:
		entry.Command = &pb.Entry_Barrier{Barrier: &pb.Barrier{}}
	case *putRules:
		entry.Command = &pb.Entry_PutRules{PutRules: putRulesToProto(cmd)}
	case *deleteRules:
		entry.Command = &pb.Entry_DeleteRules{DeleteRules: deleteRulesToProto(cmd)}
	default:
		return nil, fmt.Errorf("encode %T: unknown command", cmd)
	}
	return entry.MarshalVT()
}

// decodeEntry decodes one log entry. The result does not refer to data.
func decodeEntry(data []byte) (header, command, error) {
	var entry pb.Entry
	if err := entry.UnmarshalVT(data); err != nil {
		return header{}, nil, fmt.Errorf("decode metadata entry: %w", err)
	}
	if entry.Version == 0 {
		return header{}, nil, errors.New("decode metadata entry: it has no version")
	}
	if err := feature.CheckCluster(feature.Level(entry.Version), time.Time{}); err != nil {
		return header{}, nil, fmt.Errorf("decode metadata entry: %w", unsupported(err))
	}
	if len(entry.Request) > maxRequestIDBytes {
		return header{}, nil, fmt.Errorf("decode metadata entry: request id of %d bytes", len(entry.Request))
	}
	h := header{at: fromMillis(entry.TimeMs), request: string(entry.Request)}
	if entry.Action != nil {
		if entry.Version < uint32(feature.Level4) {
			return header{}, nil, fmt.Errorf("decode metadata entry: an entry of feature level %d has an action, which needs %d", entry.Version, feature.Level4)
		}
		action := actionFromProto(entry.Action)
		h.action = &action
	}
	cmd, err := decodeCommand(&entry)
	if err != nil {
		return header{}, nil, fmt.Errorf("decode metadata entry: %w", err)
	}
	if n := levelOf(cmd); n.level > feature.Level(entry.Version) {
		return header{}, nil, fmt.Errorf("decode metadata entry: an entry of feature level %d has %s, which needs %d", entry.Version, n.what, n.level)
	}
	return h, cmd, nil
}

func decodeCommand(entry *pb.Entry) (command, error) {
	switch cmd := entry.Command.(type) {
	case *pb.Entry_ProvisionCluster:
		return &provision{clusterFromProto(cmd.ProvisionCluster.GetCluster())}, nil
	case *pb.Entry_RegisterNode:
		return &registerNode{nodeFromProto(cmd.RegisterNode.GetNode()), cmd.RegisterNode.GetNameInUse()}, nil
	case *pb.Entry_RegisterDeployment:
		body := cmd.RegisterDeployment
		return &registerDeployment{Registration{
			Deployment: deploymentFromProto(body.GetDeployment()), Force: body.GetForce(), Breaking: body.GetBreaking(),
			RoutingHeaders: body.GetRoutingHeaders(), Limit: int(body.GetLimit()),
		}}, nil
	case *pb.Entry_DeleteDeployment:
		return &deleteDeployment{ids.Deployment(cmd.DeleteDeployment.GetId())}, nil
	case *pb.Entry_UpdateDeployment:
		body := cmd.UpdateDeployment
		return &updateDeployment{Update{Deployment: deploymentFromProto(body.GetDeployment()), Overwrite: body.GetOverwrite()}, body.GetExpected()}, nil
	case *pb.Entry_ModifyService:
		return &modifyService{cmd.ModifyService.GetName(), optionsFromProto(cmd.ModifyService.GetOptions())}, nil
	case *pb.Entry_RemoveNode:
		return &removeNode{cmd.RemoveNode.GetId(), cmd.RemoveNode.GetForce()}, nil
	case *pb.Entry_DrainNode:
		return &drainNode{cmd.DrainNode.GetId(), cmd.DrainNode.GetDraining()}, nil
	case *pb.Entry_SetPartition:
		return &setPartition{partitionFromProto(cmd.SetPartition.GetPartition()), cmd.SetPartition.GetExpectedVersion()}, nil
	case *pb.Entry_SetReplication:
		return &setReplication{cmd.SetReplication.GetReplication()}, nil
	case *pb.Entry_EnableFlowControl:
		return &enableFlowControl{}, nil
	case *pb.Entry_SetFeatureLevel:
		return &setFeatureLevel{feature.Level(cmd.SetFeatureLevel.GetLevel()), cmd.SetFeatureLevel.GetMembers()}, nil
	case *pb.Entry_CreateJob:
		return &createJob{jobFromProto(cmd.CreateJob.GetJob())}, nil
	case *pb.Entry_AdvanceJob:
		job := cmd.AdvanceJob.GetJob()
		return &advanceJob{job.GetId(), cmd.AdvanceJob.GetExpectedVersion(), progressFromProto(job)}, nil
	case *pb.Entry_StopJob:
		return &stopJob{cmd.StopJob.GetId()}, nil
	case *pb.Entry_CreateToken:
		return &createToken{tokenFromProto(cmd.CreateToken.GetToken())}, nil
	case *pb.Entry_RevokeToken:
		return &revokeToken{cmd.RevokeToken.GetId()}, nil
	case *pb.Entry_MarkFailure:
		return &markFailure{markEditFromProto(cmd.MarkFailure)}, nil
	case *pb.Entry_UseTokens:
		return &useTokens{usesFromProto(cmd.UseTokens.GetUses())}, nil
	case *pb.Entry_RecordAction:
		return &recordAction{actionFromProto(cmd.RecordAction.GetAction())}, nil
	case *pb.Entry_PutSubscription:
		sub, err := subscriptionFromProto(cmd.PutSubscription.GetSubscription())
		return &putSubscription{sub, cmd.PutSubscription.GetExpectedVersion()}, err
	case *pb.Entry_DeleteSubscription:
		return &deleteSubscription{cmd.DeleteSubscription.GetId()}, nil
	case *pb.Entry_PutKafkaCluster:
		return &putKafkaCluster{kafkaClusterFromProto(cmd.PutKafkaCluster.GetCluster()), cmd.PutKafkaCluster.GetExpectedVersion()}, nil
	case *pb.Entry_DeleteKafkaCluster:
		return &deleteKafkaCluster{cmd.DeleteKafkaCluster.GetName(), cmd.DeleteKafkaCluster.GetForce()}, nil
	case *pb.Entry_ReplaceSecrets:
		return replaceSecretsFromProto(cmd.ReplaceSecrets), nil
	case *pb.Entry_PutAuthority:
		return &putAuthority{*authorityFromProto(cmd.PutAuthority.GetAuthority()), cmd.PutAuthority.GetKeep()}, nil
	case *pb.Entry_CreateJoinToken:
		return &createJoinToken{joinTokenFromProto(cmd.CreateJoinToken.GetToken())}, nil
	case *pb.Entry_UseJoinToken:
		body := cmd.UseJoinToken
		return &useJoinToken{body.GetId(), body.GetHash(), body.GetNode(), body.GetKey()}, nil
	case *pb.Entry_RevokeJoinToken:
		return &revokeJoinToken{cmd.RevokeJoinToken.GetId()}, nil
	case *pb.Entry_Barrier:
		return &barrier{}, nil
	case *pb.Entry_PutRules:
		return decoded(cmd.PutRules, putRulesFromProto)
	case *pb.Entry_DeleteRules:
		return decoded(cmd.DeleteRules, deleteRulesFromProto)
	}
	return nil, errors.New("unknown command")
}

// decoded converts the body of a command.
func decoded[Body any, Command command](body Body, convert func(Body) (Command, error)) (command, error) {
	cmd, err := convert(body)
	if err != nil {
		return nil, err
	}
	return cmd, nil
}
