package documents

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// kafkaTool is the environment variable that makes the test binary run one of the tools that a
// Kafka distribution contains.
const kafkaTool = "DOCUMENTS_KAFKA_TOOL"

// startKafka starts a broker in this process and returns its address.
func startKafka(t *testing.T) string {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	t.Cleanup(broker.Close)
	return broker.ListenAddrs()[0]
}

// linkKafkaTools makes the tools available in PATH. They accept the flags that the documents use
// and refuse others; `make quickstart-events` runs the tools of the distribution.
func (r *runner) linkKafkaTools() {
	self, err := os.Executable()
	require.NoError(r, err)
	for _, tool := range []string{topicsTool, producerTool} {
		script := fmt.Sprintf("#!/bin/sh\n%s=%s exec %s \"$@\"\n", kafkaTool, tool, self)
		require.NoError(r, os.WriteFile(r.dir+"/bin/"+tool, []byte(script), 0o700))
	}
}

const (
	topicsTool   = "kafka-topics.sh"
	producerTool = "kafka-console-producer.sh"
)

func runKafkaTool(tool string) {
	run := map[string]func(context.Context, []string) error{topicsTool: createTopic, producerTool: produceLines}[tool]
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", tool, err)
		os.Exit(1)
	}
}

// createTopic is kafka-topics.sh --create.
func createTopic(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(topicsTool, flag.ContinueOnError)
	broker, topic := flags.String("bootstrap-server", "", ""), flags.String("topic", "", "")
	create, partitions := flags.Bool("create", false, ""), flags.Int("partitions", 1, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !*create {
		return fmt.Errorf("--create is missing")
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(*broker))
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopic(ctx, int32(*partitions), 1, nil, *topic)
	return err
}

// produceLines is kafka-console-producer.sh: each line of the standard input is a record.
func produceLines(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(producerTool, flag.ContinueOnError)
	broker, topic := flags.String("bootstrap-server", "", ""), flags.String("topic", "", "")
	properties := map[string]string{}
	flags.Func("property", "", func(text string) error {
		name, value, _ := strings.Cut(text, "=")
		if name != "parse.key" && name != "key.separator" {
			return fmt.Errorf("unknown property %s", name)
		}
		properties[name] = value
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(*broker), kgo.DefaultProduceTopic(*topic))
	if err != nil {
		return err
	}
	defer client.Close()
	return eachLine(os.Stdin, func(line string) error {
		record := &kgo.Record{Value: []byte(line)}
		if properties["parse.key"] == "true" {
			key, value, found := strings.Cut(line, properties["key.separator"])
			if !found {
				return fmt.Errorf("no key separator in %q", line)
			}
			record.Key, record.Value = []byte(key), []byte(value)
		}
		return client.ProduceSync(ctx, record).FirstErr()
	})
}

func eachLine(r io.Reader, f func(string) error) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if err := f(lines.Text()); err != nil {
			return err
		}
	}
	return lines.Err()
}
