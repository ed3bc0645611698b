package metadata

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/keyring"
	"platform/internal/target"
	"platform/metadata/hashtree"
	pb "platform/proto/metadata"
)

var writeGolden = flag.Bool("write-golden", false, "write the golden files that do not exist yet")

var goldenTime = time.UnixMilli(1_700_000_000_123).UTC()

// fullDeployment has all fields set.
func fullDeployment() *Deployment {
	id := ids.NewDeployment([16]byte{1, 2, 3})
	return &Deployment{
		ID: id, URI: "http://127.0.0.1:9080/", HTTP11: true, Bidirectional: true, MinProtocol: 5, MaxProtocol: 6,
		SDKVersion:        "restate-sdk-go/1.2.0",
		AdditionalHeaders: map[string]string{"authorization": "Bearer x", "x-b": "2"},
		Metadata:          map[string]string{"commit": "abc"},
		CreatedAt:         goldenTime,
		Services: []*Service{{
			Name: "Greeter", Type: VirtualObject, Revision: 7, Deployment: id, Documentation: "Greets.",
			Metadata: map[string]string{"team": "hello"},
			Options: Options{
				InactivityTimeout: ptr(time.Second), AbortTimeout: ptr(2 * time.Second), JournalRetention: ptr(3 * time.Second),
				IdempotencyRetention: ptr(4 * time.Second), WorkflowRetention: ptr(5 * time.Second),
				EnableLazyState: ptr(true), Public: ptr(false),
				Retry: RetryOptions{
					InitialInterval: ptr(time.Millisecond), MaxInterval: ptr(time.Minute), MaxAttempts: ptr(9), Factor: ptr(1.5), OnMaxAttempts: ptr(Kill),
				},
			},
			Handlers: []*Handler{{
				Name: "greet", Type: target.ObjectShared, Documentation: "Says hello.", Metadata: map[string]string{"a": "b"},
				Options: Options{AbortTimeout: ptr(time.Duration(0))},
				Input:   InputRules{Required: true, ContentType: "application/json", JSONSchema: json.RawMessage(`{"type":"string"}`)},
				Output:  OutputRules{ContentType: "text/plain", SetContentTypeIfEmpty: true, JSONSchema: json.RawMessage(`true`)},
			}, {
				Name: "wave", Type: target.ObjectExclusive, Input: InputRules{Any: true},
			}},
		}},
	}
}

// fullFunction has the fields that only functions have, and an option that only an operator
// can set.
func fullFunction() *Deployment {
	id := ids.NewDeployment([16]byte{4, 5, 6})
	return &Deployment{
		ID: id, ARN: "arn:aws:lambda:eu-central-1:123456789012:function:f:1", AssumeRoleARN: "arn:aws:iam::123456789012:role/r", Compression: "Zstd",
		MinProtocol: 5, MaxProtocol: 6, CreatedAt: goldenTime,
		Services: []*Service{{
			Name: "Greeter", Revision: 1, Deployment: id, Options: Options{Retry: RetryOptions{MaxAttempts: ptr(UnlimitedAttempts)}},
		}},
	}
}

func fullNode() Node {
	return Node{
		Name: "n1", ID: 3, Incarnation: "01ABC", FabricAddress: "http://n1:5122", IngressAddress: "http://n1:8080",
		AdminAddress: "http://n1:9070", RegisteredAt: goldenTime,
	}
}

func leveledNode() Node {
	n := fullNode()
	n.FeatureLevel = feature.Level2
	return n
}

func leveledCluster() Cluster {
	c := fullCluster()
	c.FeatureLevel, c.FeatureLevelAt = feature.Level2, goldenTime
	return c
}

func fullPartition() Partition { return Partition{ID: 7, Version: 5, Replicas: []uint32{3, 1, 300}} }

func fullCluster() Cluster {
	return Cluster{Name: "local", ID: "01XYZ", Partitions: 8, ProvisionedAt: goldenTime}
}

// golden compares bytes with those in testdata, which are kept indefinitely: a server has
// to read what every earlier one wrote.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".hex")
	want, err := os.ReadFile(path)
	if os.IsNotExist(err) && *writeGolden {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(hex.EncodeToString(got)+"\n"), 0o644))
		return
	}
	require.NoError(t, err)
	require.Equal(t, string(want), hex.EncodeToString(got)+"\n", "the bytes of %s changed", name)
}

// connectionOf is compared by all replicas, whose versions may differ.
func connectionOf(t *testing.T, d *Deployment) []byte {
	t.Helper()
	sum, err := d.connection()
	require.NoError(t, err)
	return sum
}

func TestGoldenLogEntries(t *testing.T) {
	for name, cmd := range map[string]command{
		"entry_provision":                  &provision{fullCluster()},
		"entry_register_node":              &registerNode{node: fullNode()},
		"entry_register_deployment":        &registerDeployment{Registration{Deployment: fullDeployment(), Force: true, Breaking: true, RoutingHeaders: []string{"x-route"}}},
		"entry_delete_deployment":          &deleteDeployment{fullDeployment().ID},
		"entry_update_deployment":          &updateDeployment{Update{Deployment: fullFunction(), Overwrite: true}, nil},
		"entry_update_deployment_expected": &updateDeployment{Update{Deployment: fullFunction(), Overwrite: true}, connectionOf(t, fullDeployment())},
		"entry_modify_service":             &modifyService{"Greeter", fullDeployment().Services[0].Options},
		"entry_modify_ingress_auth":        &modifyService{"Greeter", Options{IngressAuth: ptr(IngressToken)}},
		"entry_add_node":                   &registerNode{node: fullNode(), nameInUse: true},
		"entry_remove_node":                &removeNode{id: 3, force: true},
		"entry_drain_node":                 &drainNode{id: 300, draining: true},
		"entry_set_partition":              &setPartition{fullPartition(), 4},
		"entry_set_replication":            &setReplication{3},
		"entry_enable_flow_control":        &enableFlowControl{},
		"entry_set_feature_level":          &setFeatureLevel{level: feature.Level2, members: []string{"n1/a", "n2/b"}},
		"entry_provision_level":            &provision{leveledCluster()},
		"entry_register_level":             &registerNode{node: leveledNode()},
		"entry_create_job":                 &createJob{fullJob()},
		"entry_advance_job":                &advanceJob{"job_1", 8, fullJob().JobProgress},
		"entry_advance_counted_job":        &advanceJob{"job_1", 8, JobProgress{State: JobRunning, Matched: 302, Skipped: 1, Total: 400}},
		"entry_stop_job":                   &stopJob{"job_1"},
		"entry_mark_failure":               &markFailure{FailureMarkEdit{Group: "fg_0011223344556677", Muted: ptr(true), Note: ptr("known"), By: "ci at ::1"}},
		"entry_create_token":               &createToken{fullToken()},
		"entry_create_session":             &createToken{fullSession()},
		"entry_revoke_token":               &revokeToken{"abcdefghijklmnop"},
		"entry_use_tokens":                 &useTokens{[]TokenUse{{"abcdefghijklmnop", goldenTime}}},
		"entry_record_action":              &recordAction{fullAction()},
		"entry_put_subscription":           &putSubscription{fullSubscription(), 299},
		"entry_put_pattern":                &putSubscription{patternSubscription(), 0},
		"entry_delete_subscription":        &deleteSubscription{fullSubscription().ID},
		"entry_put_cluster":                &putKafkaCluster{fullKafkaCluster(), 3},
		"entry_delete_cluster":             &deleteKafkaCluster{"main", true},
		"entry_replace_secrets": &replaceSecrets{[]replacedSecret{
			{keyring.Place{Kind: clusterSecrets, ID: "main", Field: "sasl.password"}, []byte("before"), "after"},
		}},
		"entry_put_authority":     &putAuthority{fullAuthority(), true},
		"entry_create_join_token": &createJoinToken{fullJoinToken()},
		"entry_use_join_token":    &useJoinToken{"abcdefghijklmnop", []byte("hash"), "n4", []byte("key")},
		"entry_revoke_join_token": &revokeJoinToken{"abcdefghijklmnop"},
		"entry_barrier":           &barrier{},
		"entry_put_rules":         fullPutRules(),
		"entry_delete_rules":      fullDeleteRules(),
		"entry_renew_rules":       &putRules{changes: []flowcontrol.Change{}, renew: true},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := encodeEntry(header{at: goldenTime}, cmd)
			require.NoError(t, err)
			golden(t, name, data)
			h, decoded, err := decodeEntry(data)
			require.NoError(t, err)
			require.Equal(t, header{at: goldenTime}, h)
			require.Equal(t, cmd, decoded)
		})
	}
}

func TestGoldenRequest(t *testing.T) {
	h := header{at: goldenTime, request: "0123456789abcdef"}
	data, err := encodeEntry(h, &drainNode{id: 1})
	require.NoError(t, err)
	golden(t, "entry_with_request", data)
	got, _, err := decodeEntry(data)
	require.NoError(t, err)
	require.Equal(t, h, got)

	h.request = strings.Repeat("x", maxRequestIDBytes+1)
	data, err = encodeEntry(h, &drainNode{id: 1})
	require.NoError(t, err)
	_, _, err = decodeEntry(data)
	require.ErrorContains(t, err, "request id of 65 bytes")
}

func TestGoldenAction(t *testing.T) {
	action := fullAction()
	h := header{at: goldenTime, action: &action}
	data, err := encodeEntry(h, &drainNode{id: 1})
	require.NoError(t, err)
	golden(t, "entry_with_action", data)
	got, _, err := decodeEntry(data)
	require.NoError(t, err)
	require.Equal(t, h, got)
}

func TestGoldenRecords(t *testing.T) {
	for name, msg := range map[string]interface{ MarshalVT() ([]byte, error) }{
		"record_cluster":    clusterToProto(fullCluster()),
		"record_node":       nodeToProto(fullNode()),
		"record_deployment": deploymentToProto(fullDeployment()),
		"record_function":   deploymentToProto(fullFunction()),
		"record_overridden": deploymentToProto(&Deployment{ID: "dp_1", URI: "http://a/", Services: []*Service{{
			Name: "A", Options: Options{AbortTimeout: ptr(time.Minute)}, Declared: &Options{AbortTimeout: ptr(time.Hour), Public: ptr(true)},
		}}}),
		"record_flow_control": clusterToProto(Cluster{
			Name: "local", ID: "01XYZ", Partitions: 8, ProvisionedAt: goldenTime, Replication: 3, FlowControl: true,
		}),
		"record_cluster_level": clusterToProto(leveledCluster()),
		"record_node_level":    nodeToProto(leveledNode()),
		"record_replicated":    clusterToProto(Cluster{Name: "local", ID: "01XYZ", Partitions: 8, ProvisionedAt: goldenTime, Replication: 3}),
		"record_leaving":       nodeToProto(Node{Name: "n1", ID: 3, Incarnation: "01ABC", Draining: true, Removed: true}),
		"record_partition":     partitionToProto(fullPartition()),
		"record_job":           jobToProto(ptr(fullJob())),
		"record_failure_mark":  failureMarkToProto(ptr(fullFailureMark())),
		"record_token":         tokenToProto(ptr(fullToken())),
		"record_session":       tokenToProto(ptr(fullSession())),
		"record_authority":     authorityToProto(ptr(fullAuthority())),
		"record_join_token":    joinTokenToProto(ptr(fullJoinToken())),
		"record_audit": auditToProto(&AuditRecord{
			Sequence: 300, At: goldenTime, Action: fullAction(), Before: []byte("b"), After: []byte("a"), Previous: []byte("p"), Hash: []byte("h"),
		}),
		"record_audit_batch": auditToProto(&AuditRecord{Sequence: 301, Action: Action{Objects: []string{"inv_1", "inv_2"}, Omitted: 7}}),
		"record_audit_node":  treeNodeToProto(&hashtree.Node{Level: 2, Index: 5, Hash: []byte("h")}),
		"record_rule":        ruleToProto(&fullRules()[0]),
		"record_rule_book":   bookToProto(&flowcontrol.Book{Version: 300}),
		"record_request":     requestToProto(request{index: 300, id: "0123456789abcdef", result: []byte("result")}),
	} {
		data, err := msg.MarshalVT()
		require.NoError(t, err)
		golden(t, name, sealed(data))
	}
	value, err := unsealed(sealed([]byte("x")))
	require.NoError(t, err)
	require.Equal(t, "x", string(value))
}

func TestDamagedRecordsAreDetected(t *testing.T) {
	stored := sealed([]byte("some record"))
	for i := range stored {
		stored[i] ^= 0x10
		_, err := unsealed(stored)
		require.ErrorIs(t, err, ErrCorrupt, "byte %d", i)
		stored[i] ^= 0x10
	}
	_, err := unsealed(stored[:3])
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestEntriesOfUnknownVersionOrKindAreRejected(t *testing.T) {
	for name, entry := range map[string]*pb.Entry{
		"newer version": {Version: uint32(feature.Supported()) + 1, Command: &pb.Entry_DeleteDeployment{DeleteDeployment: &pb.DeleteDeployment{}}},
		"no version":    {Command: &pb.Entry_DeleteDeployment{DeleteDeployment: &pb.DeleteDeployment{}}},
		"no command":    {Version: 1},
		"level too low": {Version: 1, Command: &pb.Entry_SetFeatureLevel{SetFeatureLevel: &pb.SetFeatureLevel{Level: 2}}},
	} {
		data, err := entry.MarshalVT()
		require.NoError(t, err)
		_, _, err = decodeEntry(data)
		require.Error(t, err, name)
	}
	_, _, err := decodeEntry([]byte{0xff})
	require.Error(t, err)
}

func FuzzDecodeEntry(f *testing.F) {
	data, err := encodeEntry(header{at: goldenTime}, &registerDeployment{Registration{Deployment: fullDeployment()}})
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		h, cmd, err := decodeEntry(data)
		if err != nil {
			return
		}
		again, err := encodeEntry(h, cmd)
		require.NoError(t, err)
		_, back, err := decodeEntry(again)
		require.NoError(t, err)
		require.Equal(t, cmd, back)
	})
}
