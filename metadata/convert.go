package metadata

import (
	"maps"
	"math"
	"slices"
	"time"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	pb "platform/proto/metadata"
)

// The functions in this file convert between the types of this package and those that are
// written to the log and to disk.

func clusterToProto(c Cluster) *pb.Cluster {
	return &pb.Cluster{
		Name: c.Name, Id: c.ID, Partitions: c.Partitions, ProvisionedAtMs: millis(c.ProvisionedAt),
		Replication: c.Replication, FlowControl: c.FlowControl,
		FeatureLevel: uint32(c.FeatureLevel), FeatureLevelAtMs: millis(c.FeatureLevelAt),
	}
}

func clusterFromProto(c *pb.Cluster) Cluster {
	return Cluster{
		Name: c.GetName(), ID: c.GetId(), Partitions: c.GetPartitions(), ProvisionedAt: fromMillis(c.GetProvisionedAtMs()),
		Replication: c.GetReplication(), FlowControl: c.GetFlowControl(),
		FeatureLevel: feature.Level(c.GetFeatureLevel()), FeatureLevelAt: fromMillis(c.GetFeatureLevelAtMs()),
	}
}

func nodeToProto(n Node) *pb.Node {
	return &pb.Node{
		Name: n.Name, Id: n.ID, Incarnation: n.Incarnation,
		FabricAddress: n.FabricAddress, IngressAddress: n.IngressAddress, AdminAddress: n.AdminAddress,
		RegisteredAtMs: millis(n.RegisteredAt), Draining: n.Draining, Removed: n.Removed,
		FeatureLevel: uint32(n.FeatureLevel),
	}
}

func nodeFromProto(n *pb.Node) Node {
	return Node{
		Name: n.GetName(), ID: n.GetId(), Incarnation: n.GetIncarnation(),
		FabricAddress: n.GetFabricAddress(), IngressAddress: n.GetIngressAddress(), AdminAddress: n.GetAdminAddress(),
		RegisteredAt: fromMillis(n.GetRegisteredAtMs()), Draining: n.GetDraining(), Removed: n.GetRemoved(),
		FeatureLevel: feature.Level(n.GetFeatureLevel()),
	}
}

func partitionToProto(p Partition) *pb.Partition {
	return &pb.Partition{Id: p.ID, Version: p.Version, Replicas: p.Replicas}
}

func partitionFromProto(p *pb.Partition) Partition {
	return Partition{ID: p.GetId(), Version: p.GetVersion(), Replicas: p.GetReplicas()}
}

func deploymentToProto(d *Deployment) *pb.Deployment {
	out := &pb.Deployment{
		Id: string(d.ID), Uri: d.URI, Http11: d.HTTP11, Bidirectional: d.Bidirectional,
		MinProtocol: d.MinProtocol, MaxProtocol: d.MaxProtocol, SdkVersion: d.SDKVersion,
		AdditionalHeaders: pairsToProto(d.AdditionalHeaders), Metadata: pairsToProto(d.Metadata), CreatedAtMs: millis(d.CreatedAt),
		Arn: d.ARN, AssumeRoleArn: d.AssumeRoleARN, Compression: d.Compression,
	}
	for _, s := range d.Services {
		out.Services = append(out.Services, serviceToProto(s))
	}
	return out
}

func deploymentFromProto(d *pb.Deployment) *Deployment {
	out := &Deployment{
		ID: ids.Deployment(d.GetId()), URI: d.GetUri(), HTTP11: d.GetHttp11(), Bidirectional: d.GetBidirectional(),
		MinProtocol: d.GetMinProtocol(), MaxProtocol: d.GetMaxProtocol(), SDKVersion: d.GetSdkVersion(),
		AdditionalHeaders: pairsFromProto(d.GetAdditionalHeaders()), Metadata: pairsFromProto(d.GetMetadata()),
		CreatedAt: fromMillis(d.GetCreatedAtMs()),
		ARN:       d.GetArn(), AssumeRoleARN: d.GetAssumeRoleArn(), Compression: d.GetCompression(),
	}
	for _, s := range d.GetServices() {
		out.Services = append(out.Services, serviceFromProto(s, out.ID))
	}
	return out
}

func serviceToProto(s *Service) *pb.Service {
	out := &pb.Service{
		Name: s.Name, Type: uint32(s.Type), Revision: s.Revision,
		Documentation: s.Documentation, Metadata: pairsToProto(s.Metadata), Options: optionsToProto(&s.Options),
	}
	if s.Declared != nil {
		out.Declared = optionsToProto(s.Declared)
	}
	for _, h := range s.Handlers {
		out.Handlers = append(out.Handlers, &pb.Handler{
			Name: h.Name, Type: uint32(h.Type),
			Documentation: h.Documentation, Metadata: pairsToProto(h.Metadata), Options: optionsToProto(&h.Options),
			Input: &pb.InputRules{
				Required: h.Input.Required, ContentType: h.Input.ContentType, Any: h.Input.Any, JsonSchema: h.Input.JSONSchema,
			},
			Output: &pb.OutputRules{
				ContentType: h.Output.ContentType, SetContentTypeIfEmpty: h.Output.SetContentTypeIfEmpty, JsonSchema: h.Output.JSONSchema,
			},
		})
	}
	return out
}

func serviceFromProto(s *pb.Service, id ids.Deployment) *Service {
	out := &Service{
		Name: s.GetName(), Type: ServiceType(s.GetType()), Revision: s.GetRevision(), Deployment: id,
		Documentation: s.GetDocumentation(), Metadata: pairsFromProto(s.GetMetadata()), Options: optionsFromProto(s.GetOptions()),
	}
	if s.Declared != nil {
		out.Declared = new(optionsFromProto(s.Declared))
	}
	for _, h := range s.GetHandlers() {
		in, result := h.GetInput(), h.GetOutput()
		out.Handlers = append(out.Handlers, &Handler{
			Name: h.GetName(), Type: target.Type(h.GetType()),
			Documentation: h.GetDocumentation(), Metadata: pairsFromProto(h.GetMetadata()), Options: optionsFromProto(h.GetOptions()),
			Input: InputRules{
				Required: in.GetRequired(), ContentType: in.GetContentType(), Any: in.GetAny(), JSONSchema: in.GetJsonSchema(),
			},
			Output: OutputRules{
				ContentType: result.GetContentType(), SetContentTypeIfEmpty: result.GetSetContentTypeIfEmpty(), JSONSchema: result.GetJsonSchema(),
			},
		})
	}
	return out
}

func optionsToProto(o *Options) *pb.Options {
	return &pb.Options{
		InactivityTimeoutMs:    convertPointer(o.InactivityTimeout, time.Duration.Milliseconds),
		AbortTimeoutMs:         convertPointer(o.AbortTimeout, time.Duration.Milliseconds),
		JournalRetentionMs:     convertPointer(o.JournalRetention, time.Duration.Milliseconds),
		IdempotencyRetentionMs: convertPointer(o.IdempotencyRetention, time.Duration.Milliseconds),
		WorkflowRetentionMs:    convertPointer(o.WorkflowRetention, time.Duration.Milliseconds),
		EnableLazyState:        o.EnableLazyState,
		Public:                 o.Public,
		IngressAuth:            convertPointer(o.IngressAuth, func(a IngressAuth) uint32 { return uint32(a) }),
		ForwardHeaders:         headerNamesToProto(o.ForwardHeaders),
		RetryInitialIntervalMs: convertPointer(o.Retry.InitialInterval, time.Duration.Milliseconds),
		RetryMaxIntervalMs:     convertPointer(o.Retry.MaxInterval, time.Duration.Milliseconds),
		RetryMaxAttempts:       convertPointer(o.Retry.MaxAttempts, func(n int) int64 { return int64(n) }),
		RetryFactor:            o.Retry.Factor,
		RetryOnMaxAttempts:     convertPointer(o.Retry.OnMaxAttempts, func(e OnMaxAttempts) uint32 { return uint32(e) }),
	}
}

func headerNamesToProto(names *[]string) *pb.HeaderNames {
	if names == nil {
		return nil
	}
	return &pb.HeaderNames{Names: *names}
}

func headerNamesFromProto(m *pb.HeaderNames) *[]string {
	if m == nil {
		return nil
	}
	names := append([]string{}, m.GetNames()...)
	return &names
}

func optionsFromProto(o *pb.Options) Options {
	if o == nil {
		return Options{}
	}
	return Options{
		InactivityTimeout:    convertPointer(o.InactivityTimeoutMs, milliseconds),
		AbortTimeout:         convertPointer(o.AbortTimeoutMs, milliseconds),
		JournalRetention:     convertPointer(o.JournalRetentionMs, milliseconds),
		IdempotencyRetention: convertPointer(o.IdempotencyRetentionMs, milliseconds),
		WorkflowRetention:    convertPointer(o.WorkflowRetentionMs, milliseconds),
		EnableLazyState:      o.EnableLazyState,
		Public:               o.Public,
		IngressAuth:          convertPointer(o.IngressAuth, func(n uint32) IngressAuth { return IngressAuth(n) }),
		ForwardHeaders:       headerNamesFromProto(o.ForwardHeaders),
		Retry: RetryOptions{
			InitialInterval: convertPointer(o.RetryInitialIntervalMs, milliseconds),
			MaxInterval:     convertPointer(o.RetryMaxIntervalMs, milliseconds),
			MaxAttempts:     convertPointer(o.RetryMaxAttempts, func(n int64) int { return int(n) }),
			Factor:          o.RetryFactor,
			OnMaxAttempts:   convertPointer(o.RetryOnMaxAttempts, func(n uint32) OnMaxAttempts { return OnMaxAttempts(n) }),
		},
	}
}

// milliseconds converts a stored duration, saturating on overflow.
func milliseconds(n int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Millisecond)
	return time.Duration(min(max(n, -most), most)) * time.Millisecond
}

// convertPointer converts the value of a pointer; nil stays nil.
func convertPointer[From, To any](from *From, convert func(From) To) *To {
	if from == nil {
		return nil
	}
	to := convert(*from)
	return &to
}

// pairsToProto lists a map ordered by key, so that equal maps have equal bytes.
func pairsToProto(m map[string]string) []*pb.Pair {
	var list []*pb.Pair
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, &pb.Pair{Key: key, Value: m[key]})
	}
	return list
}

func pairsFromProto(list []*pb.Pair) map[string]string {
	if len(list) == 0 {
		return nil
	}
	m := make(map[string]string, len(list))
	for _, p := range list {
		m[p.GetKey()] = p.GetValue()
	}
	return m
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
