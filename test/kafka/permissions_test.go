package kafka

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"platform/test/harness"
)

// TestDeniedPermissions reads from a broker that authorizes clients: what it denies is shown with a
// reason, and the subscription continues by itself when it is granted.
func TestDeniedPermissions(t *testing.T) {
	authorized := &listener{
		name: "AUTHORIZED", protocol: "SASL_PLAINTEXT",
		properties: []string{"sasl.enabled.mechanisms=PLAIN", `plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_platform="secret";`},
		broker:     []string{"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users=User:ANONYMOUS"},
	}
	b := startBrokers(t, 1, authorized)
	l, uri := startService(t)
	c := harness.ClusterFor(t, harness.ClusterOptions{Nodes: 1})
	require.NoError(t, c.Nodes[0].Register(t.Context(), uri, false))
	post(t, c, "/kafka-clusters", map[string]any{"name": "main", "properties": map[string]string{
		"bootstrap.servers": authorized.address, "security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "platform", "sasl.password": "secret",
	}})
	for _, test := range []struct {
		name string
		run  func(s *situation, topic string)
	}{
		{"topic", deniedTopic}, {"read", deniedRead}, {"group", deniedGroup}, {"dead-letters", deniedDeadLetters},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(&situation{t, b, c, l}, test.name) })
	}
}

func topicACL(operation kadm.ACLOperation, topics ...string) *kadm.ACLBuilder {
	return kadm.NewACLs().Allow("User:platform").AllowHosts("*").Topics(topics...).Operations(operation).ResourcePatternType(kadm.ACLPatternLiteral)
}

func groupACL(groups ...string) *kadm.ACLBuilder {
	return kadm.NewACLs().Allow("User:platform").AllowHosts("*").Groups(groups...).Operations(kadm.OpRead).ResourcePatternType(kadm.ACLPatternLiteral)
}

func (s *situation) grant(acl *kadm.ACLBuilder) {
	s.Helper()
	results, err := s.b.admin.CreateACLs(s.Context(), acl)
	require.NoError(s, err)
	for _, r := range results {
		require.NoError(s, r.Err)
	}
}

func (s *situation) revoke(acl *kadm.ACLBuilder) {
	s.Helper()
	results, err := s.b.admin.DeleteACLs(s.Context(), acl)
	require.NoError(s, err)
	for _, r := range results {
		require.NoError(s, r.Err)
		require.NotEmpty(s, r.Deleted)
	}
}

// request sends a request to the admin API, and returns the status and the body.
func (s *situation) request(path string, body any) (int, string) {
	s.Helper()
	text, err := json.Marshal(body)
	require.NoError(s, err)
	resp, err := http.Post(s.c.Nodes[0].Admin()+path, "application/json", bytes.NewReader(text))
	require.NoError(s, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(s, err)
	return resp.StatusCode, string(answer)
}

// A topic that the client may not see is refused by a check; otherwise the subscription starts when
// it is granted.
func deniedTopic(s *situation, topic string) {
	s.b.topic(topic, 1)
	s.produce(topic, 3, sameKey)
	body := map[string]any{"source": "kafka://main/" + topic, "sink": "service://Plain/run", "start": "earliest"}
	status, answer := s.request("/subscriptions?check=true", body)
	require.Equal(s, http.StatusBadRequest, status, answer)
	require.Contains(s, answer, "META0009")
	require.Contains(s, answer, "TOPIC_AUTHORIZATION_FAILED")
	path := "/subscriptions/" + post(s, s.c, "/subscriptions", body)["id"].(string)
	s.awaitStatus(path, stateIs("error", "not_authorized"))
	status, answer = s.request(path+"/seek?restart=true", map[string]any{"start": "earliest"})
	require.Equal(s, http.StatusBadRequest, status, answer)
	require.Contains(s, answer, "TOPIC_AUTHORIZATION_FAILED")
	s.grant(topicACL(kadm.OpRead, topic))
	s.awaitStatus(path, readTo(3))
	s.awaitRecords(topic, 3)
}

// The permission to describe a topic suffices to resolve a start, but not to read.
func deniedRead(s *situation, topic string) {
	s.b.topic(topic, 1)
	s.grant(topicACL(kadm.OpDescribe, topic))
	path := s.subscribe(topic)
	s.produce(topic, 3, sameKey)
	s.awaitStatus(path, stateIs("error", "not_authorized"))
	s.grant(topicACL(kadm.OpRead, topic))
	s.awaitStatus(path, readTo(3))
	s.revoke(topicACL(kadm.OpRead, topic))
	s.awaitStatus(path, stateIs("error", "not_authorized"))
	s.produce(topic, 2, sameKey)
	s.grant(topicACL(kadm.OpRead, topic))
	s.awaitStatus(path, readTo(5))
	s.awaitRecords(topic, 5)
}

// Records are delivered although positions cannot be committed for the group, which is shown. A start
// at the positions of a group needs its permission.
func deniedGroup(s *situation, topic string) {
	s.b.topic(topic, 1)
	s.grant(topicACL(kadm.OpRead, topic))
	body := map[string]any{"source": "kafka://main/" + topic, "sink": "service://Plain/run", "start": "group", "options": map[string]string{"group.id": "billing"}}
	status, answer := s.request("/subscriptions?check=true", body)
	require.Equal(s, http.StatusBadRequest, status, answer)
	require.Contains(s, answer, "GROUP_AUTHORIZATION_FAILED")
	path := s.subscribe(topic)
	s.produce(topic, 3, sameKey)
	s.awaitStatus(path, readTo(3))
	s.awaitStatus(path, func(st *subscriptionStatus) bool {
		return st.State == "running" && strings.Contains(st.Message, "GROUP_AUTHORIZATION_FAILED")
	})
	group := strings.TrimPrefix(path, "/subscriptions/")
	s.grant(groupACL(group))
	s.awaitStatus(path, func(st *subscriptionStatus) bool { return st.State == "running" && st.Message == "" })
	require.Eventually(s, func() bool {
		committed, err := s.b.admin.FetchOffsets(s.Context(), group)
		at, ok := committed.Lookup(topic, 0)
		return err == nil && ok && at.At == 3
	}, time.Minute, 50*time.Millisecond, "it is committed")
}

// A record that cannot be delivered waits until the dead-letter topic may be written, and is written
// once.
func deniedDeadLetters(s *situation, topic string) {
	letters := topic + "-letters"
	s.b.topic(topic, 1)
	s.b.topic(letters, 1)
	s.grant(topicACL(kadm.OpRead, topic))
	sub := post(s, s.c, "/subscriptions?check=true", map[string]any{
		"source": "kafka://main/" + topic, "sink": "service://Orders/add", "on_error": "dead-letter", "dead_letter_topic": letters,
	})
	path := "/subscriptions/" + sub["id"].(string)
	s.produce(topic, 1, func(int) string { return "\xff" })
	s.produce(topic, 1, sameKey)
	s.awaitStatus(path, func(st *subscriptionStatus) bool {
		return st.State == "error" && st.Reason == "not_authorized" && strings.Contains(st.Message, "dead-letter topic "+letters)
	})
	s.grant(topicACL(kadm.OpWrite, letters))
	s.awaitStatus(path, readTo(2))
	require.Equal(s, 1, s.offsets(letters))
	s.revoke(topicACL(kadm.OpWrite, letters))
	s.produce(topic, 1, func(int) string { return "\xff" })
	s.awaitStatus(path, stateIs("error", "not_authorized"))
	s.grant(topicACL(kadm.OpWrite, letters))
	s.awaitStatus(path, readTo(3))
	require.Equal(s, 2, s.offsets(letters))
	s.awaitRecords(topic, 1)
}
