package kafka

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platform/test/harness"
)

// brokers is a Kafka cluster in KRaft mode. Each process is a broker and a controller.
type brokers struct {
	t      testing.TB
	nodes  []*broker
	client *kgo.Client
	admin  *kadm.Client
	factor int16
}

// broker is one process, which keeps its ports and data across restarts.
type broker struct {
	config  string
	log     string
	address string
	jars    string
	cmd     *exec.Cmd
	exited  chan struct{}
}

// jars returns the class path of the broker, and skips the test if it is not there.
func jars(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("SKIPPED: Java 17 is needed to run Kafka brokers")
	}
	dir := os.Getenv("KAFKA_JARS")
	if dir == "" {
		dir = filepath.Join("target", "lib")
	}
	found, err := filepath.Glob(filepath.Join(dir, "kafka_2.13-*.jar"))
	require.NoError(t, err)
	if len(found) == 0 {
		t.Skip("SKIPPED: the jars of Kafka are not in " + dir + "; run `make kafka-jars`, which downloads them from Maven Central")
	}
	absolute, err := filepath.Abs(dir)
	require.NoError(t, err)
	return filepath.Join(absolute, "*")
}

// listener is a further listener of a broker for clients.
type listener struct {
	name, protocol string
	properties     []string
	broker         []string                    // properties of the whole broker
	front          func(address string) string // returns the address that clients use; nil: that of the broker
	address        string                      // for clients; set by startBrokers
}

// startBrokers starts a cluster of n brokers, which ends with the test. Further listeners are
// those of the only broker.
func startBrokers(t testing.TB, n int, more ...*listener) *brokers {
	t.Helper()
	classes := jars(t)
	ports, err := harness.FreePorts(2*n + len(more))
	require.NoError(t, err)
	b := &brokers{t: t, factor: int16(min(n, 3))}
	var voters, addresses []string
	for i := range n {
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", i+1, ports[2*i+1]))
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", ports[2*i]))
	}
	listeners, advertised, protocols, properties := "", "", "", []string(nil)
	for i, l := range more {
		l.address = fmt.Sprintf("127.0.0.1:%d", ports[2*n+i])
		listeners += fmt.Sprintf(",%s://%s", l.name, l.address)
		if l.front != nil {
			l.address = l.front(l.address)
		}
		advertised += fmt.Sprintf(",%s://%s", l.name, l.address)
		protocols += "," + l.name + ":" + l.protocol
		properties = append(properties, l.broker...)
		for _, p := range l.properties {
			properties = append(properties, "listener.name."+strings.ToLower(l.name)+"."+p)
		}
	}
	id := base64.RawURLEncoding.EncodeToString([]byte("platformtestkafk"))
	for i := range n {
		dir := t.TempDir()
		nd := &broker{config: filepath.Join(dir, "server.properties"), log: filepath.Join(dir, "broker.log"), address: addresses[i], jars: classes}
		require.NoError(t, os.WriteFile(nd.config, []byte(strings.Join(append(properties,
			"process.roles=broker,controller", fmt.Sprintf("node.id=%d", i+1), "controller.quorum.voters="+strings.Join(voters, ","),
			fmt.Sprintf("listeners=PLAINTEXT://%s,CONTROLLER://127.0.0.1:%d%s", addresses[i], ports[2*i+1], listeners),
			"advertised.listeners=PLAINTEXT://"+addresses[i]+advertised, "controller.listener.names=CONTROLLER", "inter.broker.listener.name=PLAINTEXT",
			"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"+protocols, "log.dirs="+filepath.Join(dir, "data"),
			fmt.Sprintf("offsets.topic.replication.factor=%d", b.factor), fmt.Sprintf("transaction.state.log.replication.factor=%d", b.factor),
			fmt.Sprintf("transaction.state.log.min.isr=%d", min(2, n)), "offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1",
			fmt.Sprintf("min.insync.replicas=%d", min(2, n)), "group.initial.rebalance.delay.ms=0", "auto.create.topics.enable=false", "num.io.threads=2", "num.network.threads=2",
		), "\n")), 0o600))
		out, err := nd.java("-Xmx64m", "kafka.tools.StorageTool", "format", "-t", id, "-c", nd.config).CombinedOutput()
		require.NoError(t, err, string(out))
		b.nodes = append(b.nodes, nd)
	}
	t.Cleanup(func() {
		for _, nd := range b.nodes {
			nd.kill()
		}
	})
	for _, nd := range b.nodes {
		nd.start(t)
	}
	b.client, err = kgo.NewClient(kgo.SeedBrokers(addresses...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequiredAcks(kgo.AllISRAcks()))
	require.NoError(t, err)
	t.Cleanup(b.client.Close)
	b.admin = kadm.NewClient(b.client)
	t.Cleanup(func() {
		if t.Failed() {
			b.showLogs()
		}
	})
	var last atomic.Value // what was seen last
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		// Not through kadm, which keeps the first response and never learns of brokers that start later.
		request := kmsg.NewPtrMetadataRequest()
		request.Topics = []kmsg.MetadataRequestTopic{}
		m, err := request.RequestWith(ctx, b.client)
		if err != nil {
			last.Store(err.Error())
			return false
		}
		last.Store(fmt.Sprintf("%d brokers", len(m.Brokers)))
		return len(m.Brokers) == n
	}, 3*time.Minute, 50*time.Millisecond, "the brokers start: %v", &last)
	return b
}

// showLogs logs the ends of the logs of the brokers.
func (b *brokers) showLogs() {
	const most = 4 << 10
	for i, nd := range b.nodes {
		text, err := os.ReadFile(nd.log)
		state := "runs"
		select {
		case <-nd.exited:
			state = nd.cmd.ProcessState.String()
		default:
		}
		b.t.Logf("broker %d: %s, %v\n%s", i+1, state, err, text[max(0, len(text)-most):])
	}
}

func (nd *broker) java(args ...string) *exec.Cmd {
	return exec.Command("java", append([]string{"-cp", nd.jars, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"}, args...)...)
}

func (nd *broker) start(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(nd.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer log.Close()
	nd.cmd = nd.java(fmt.Sprintf("-Xmx%dm", setting(t, "KAFKA_HEAP", 256)), "kafka.Kafka", nd.config)
	nd.cmd.Stdout, nd.cmd.Stderr = log, log
	endWithTest(nd.cmd)
	require.NoError(t, nd.cmd.Start())
	nd.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		_ = cmd.Wait()
		close(exited)
	}(nd.cmd, nd.exited)
}

// kill ends the process without a chance to shut down.
func (nd *broker) kill() {
	if nd.cmd != nil {
		_ = nd.cmd.Process.Kill()
		<-nd.exited
	}
}

// list returns the addresses for clients.
func (b *brokers) list() string {
	var all []string
	for _, nd := range b.nodes {
		all = append(all, nd.address)
	}
	return strings.Join(all, ",")
}

func (b *brokers) topic(name string, partitions int32) {
	b.t.Helper()
	const atOnce = 5000 // fewer than a controller makes in one batch
	_, err := b.admin.CreateTopic(b.t.Context(), min(partitions, atOnce), b.factor, nil, name)
	require.NoError(b.t, err)
	for made := int32(atOnce); made < partitions; made += atOnce {
		grown, err := b.admin.UpdatePartitions(b.t.Context(), int(min(partitions, made+atOnce)), name)
		require.NoError(b.t, err)
		require.NoError(b.t, grown.Error())
	}
	require.Eventually(b.t, func() bool { // brokers learn of it from the controller
		topics, err := b.admin.ListTopics(b.t.Context(), name)
		return err == nil && topics.Error() == nil
	}, time.Minute, 20*time.Millisecond, "the topic %s", name)
}
