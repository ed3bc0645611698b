package metadata

import (
	"errors"
	"fmt"
	"slices"

	"platform/flowcontrol"
	"platform/internal/errcode"
	"platform/internal/ids"
	"platform/internal/subscription"
	pb "platform/proto/metadata"
)

// rejection is a sentinel error with a message for users.
type rejection struct {
	reason error
	text   string
}

func (r *rejection) Error() string { return r.text }
func (r *rejection) Unwrap() error { return r.reason }

// Kinds of rejections. They are stored and sent between nodes: numbers are only added.
const (
	rejectionOther = iota // only a message
	rejectionNotFound
	rejectionInvalid
	rejectionCoded
	rejectionReasons // plus the index in reasons
)

// reasons are only appended.
var reasons = []error{
	ErrNodeConflict, ErrNodeInUse, ErrNodeRemoved, ErrLastNode, ErrNodeHoldsData, ErrVersionConflict,
	ErrRulePrecondition, ErrTooManyRules, ErrNodeTooOld, ErrMembersChanged,
	ErrTooManyJobs, ErrJobNotFound, ErrJobChanged,
	ErrTooManyTokens, ErrTokenNotFound, ErrTokenExists,
	ErrTooManySubscriptions, ErrSubscriptionNotFound, errSubscriptionChanged,
	ErrTooManyClusters, ErrClusterNotFound, errClusterChanged, ErrClusterExists, ErrClusterInUse,
	errDeploymentsChanged,
	ErrJoinTokenRefused, ErrJoinTokenNotFound, ErrTooManyJoinTokens,
}

func rejectionToProto(err error) *pb.Refusal {
	out := &pb.Refusal{Message: err.Error()}
	if missing, ok := errors.AsType[*NotFoundError](err); ok {
		out.Kind, out.Message = rejectionNotFound, ""
		out.Deployment, out.Service, out.Handler = string(missing.Deployment), missing.Service, missing.Handler
		out.Node = missing.Node
		return out
	}
	if _, ok := errors.AsType[*InvalidError](err); ok {
		out.Kind = rejectionInvalid
		return out
	}
	if coded, ok := errors.AsType[*errcode.Error](err); ok {
		out.Kind, out.Message = rejectionCoded, coded.Message
		out.Code, out.Status = string(coded.Code), uint32(coded.Status)
		return out
	}
	if at := slices.IndexFunc(reasons, func(reason error) bool { return errors.Is(err, reason) }); at >= 0 {
		out.Kind = rejectionReasons + uint32(at)
	}
	return out
}

func rejectionFromProto(r *pb.Refusal) error {
	switch kind := r.GetKind(); {
	case kind == rejectionNotFound:
		return &NotFoundError{
			Deployment: ids.Deployment(r.GetDeployment()), Service: r.GetService(), Handler: r.GetHandler(), Node: r.GetNode(),
		}
	case kind == rejectionInvalid:
		return &InvalidError{r.GetMessage()}
	case kind == rejectionCoded:
		return &errcode.Error{Code: errcode.Code(r.GetCode()), Message: r.GetMessage(), Status: int(r.GetStatus())}
	case kind >= rejectionReasons && kind < rejectionReasons+uint32(len(reasons)):
		return &rejection{reasons[kind-rejectionReasons], r.GetMessage()}
	}
	return errors.New(r.GetMessage()) // from a newer server
}

// encodeOutcome encodes the outcome of a command.
func encodeOutcome(o outcome) ([]byte, error) {
	out := &pb.Result{}
	switch v := o.value.(type) {
	case nil:
	case Cluster:
		out.Result = &pb.Result_Cluster{Cluster: clusterToProto(v)}
	case Node:
		out.Result = &pb.Result_Node{Node: nodeToProto(v)}
	case Partition:
		out.Result = &pb.Result_Partition{Partition: partitionToProto(v)}
	case Registered:
		out.Result = &pb.Result_Registered{Registered: &pb.Registered{Deployment: deploymentToProto(v.Deployment), Change: uint32(v.Change)}}
	case *Deployment:
		out.Result = &pb.Result_Deployment{Deployment: deploymentToProto(v)}
	case *Service:
		out.Result = &pb.Result_Service{Service: &pb.ServiceRevision{Service: serviceToProto(v), Deployment: string(v.Deployment)}}
	case subscription.Subscription:
		out.Result = &pb.Result_Subscription{Subscription: subscriptionToProto(&v)}
	case subscription.Cluster:
		out.Result = &pb.Result_KafkaCluster{KafkaCluster: kafkaClusterToProto(&v)}
	case Job:
		out.Result = &pb.Result_Job{Job: jobToProto(&v)}
	case FailureMark:
		out.Result = &pb.Result_FailureMark{FailureMark: failureMarkToProto(&v)}
	case JoinToken:
		out.Result = &pb.Result_JoinToken{JoinToken: joinTokenToProto(&v)}
	case Token:
		out.Result = &pb.Result_Token{Token: tokenToProto(&v)}
	case []flowcontrol.Rule:
		out.Result = &pb.Result_Rules{Rules: rulesToProto(v)}
	case []flowcontrol.Pattern:
		out.Result = &pb.Result_Patterns{Patterns: patternsToProto(v)}
	default:
		return nil, fmt.Errorf("encode result %T: unknown type", v)
	}
	if o.rejection != nil {
		out.Result = &pb.Result_Refusal{Refusal: rejectionToProto(o.rejection)}
	}
	return out.MarshalVT()
}

// decodeOutcome decodes an outcome. The result does not refer to data.
func decodeOutcome(data []byte) (outcome, error) {
	var in pb.Result
	if err := in.UnmarshalVT(data); err != nil {
		return outcome{}, fmt.Errorf("decode result: %w", err)
	}
	switch r := in.Result.(type) {
	case *pb.Result_Refusal:
		return outcome{rejection: rejectionFromProto(r.Refusal)}, nil
	case *pb.Result_Cluster:
		return outcome{value: clusterFromProto(r.Cluster)}, nil
	case *pb.Result_Node:
		return outcome{value: nodeFromProto(r.Node)}, nil
	case *pb.Result_Partition:
		return outcome{value: partitionFromProto(r.Partition)}, nil
	case *pb.Result_Registered:
		return outcome{value: Registered{Deployment: deploymentFromProto(r.Registered.GetDeployment()), Change: Change(r.Registered.GetChange())}}, nil
	case *pb.Result_Deployment:
		return outcome{value: deploymentFromProto(r.Deployment)}, nil
	case *pb.Result_Service:
		return outcome{value: serviceFromProto(r.Service.GetService(), ids.Deployment(r.Service.GetDeployment()))}, nil
	case *pb.Result_Job:
		return outcome{value: jobFromProto(r.Job)}, nil
	case *pb.Result_FailureMark:
		return outcome{value: failureMarkFromProto(r.FailureMark)}, nil
	case *pb.Result_JoinToken:
		return outcome{value: joinTokenFromProto(r.JoinToken)}, nil
	case *pb.Result_Token:
		return outcome{value: tokenFromProto(r.Token)}, nil
	case *pb.Result_Subscription:
		sub, err := subscriptionFromProto(r.Subscription)
		return outcome{value: sub}, err
	case *pb.Result_KafkaCluster:
		return outcome{value: kafkaClusterFromProto(r.KafkaCluster)}, nil
	case *pb.Result_Rules:
		rules, err := rulesFromProto(r.Rules)
		return outcome{value: rules}, err
	case *pb.Result_Patterns:
		patterns, err := patternsFromProto(r.Patterns)
		return outcome{value: patterns}, err
	}
	return outcome{}, nil
}
