package subscriptions

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

// KafkaClusters returns the command kafka-clusters.
func KafkaClusters(app *command.App) *cobra.Command {
	a := &commands{app}
	return command.Group(&cobra.Command{
		Use:     "kafka-clusters",
		Aliases: []string{"kafka-cluster", "kc"},
		Short:   "Manage the Kafka clusters that subscriptions read from",
		Long: `A Kafka cluster has a name and properties of Kafka clients, under the names of librdkafka; its
bootstrap.servers are required. Secrets are never shown.`,
	}, a.kafkaClustersCreate(), a.kafkaClustersList(), a.kafkaClustersDescribe(), a.kafkaClustersEdit(), a.kafkaClustersDelete())
}

func propertiesFlag(flags *pflag.FlagSet) *string {
	return flags.StringP("file", "f", "", "read properties from this file, a line each as in Java (- for stdin)")
}

// properties reads properties from a file, if any, and from arguments of the form name=value, which override
// those of the file.
func (a *commands) properties(file string, args []string) (map[string]string, error) {
	values := map[string]string{}
	if file != "" {
		var text []byte
		var err error
		if file == "-" {
			text, err = io.ReadAll(a.In)
		} else {
			text, err = os.ReadFile(file)
		}
		if err != nil {
			return nil, fmt.Errorf("read properties: %w", err)
		}
		if err := parseProperties(text, values); err != nil {
			return nil, fmt.Errorf("read properties from %s: %w", file, err)
		}
	}
	given := map[string]bool{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, command.UsageError(fmt.Sprintf("%q is not a property of the form name=value", arg))
		}
		if given[name] {
			return nil, command.UsageError(fmt.Sprintf("the property %q is given twice", name))
		}
		given[name], values[name] = true, value
	}
	return values, nil
}

// parseProperties reads lines of the form name=value. Values may be quoted as in TOML.
func parseProperties(text []byte, into map[string]string) error {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if unquoted, err := strconv.Unquote(value); err == nil && strings.HasPrefix(value, `"`) {
			value = unquoted
		}
		if !ok || name == "" {
			return fmt.Errorf("line %d is not of the form name=value", number)
		}
		into[strings.Trim(name, `"`)] = value
	}
	return lines.Err()
}

func (a *commands) kafkaClustersCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create <name> [property=value]...", Aliases: []string{"add"}, Short: "Add a Kafka cluster", Args: cobra.MinimumNArgs(1),
		Example: `  platform kafka-clusters create main bootstrap.servers=127.0.0.1:9092
  platform kafka-clusters create prod -f client.properties`,
	}
	file := propertiesFlag(cmd.Flags())
	edit := editFlag(cmd.Flags())
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		values, err := a.properties(*file, args[1:])
		if err != nil {
			return err
		}
		if _, given := values[bootstrapServers]; *edit && !given {
			values[bootstrapServers] = ""
		}
		return a.editProperties(ctx, *edit, values, func(values map[string]string) error {
			cluster, response, err := a.Client.CreateKafkaCluster(ctx, args[0], values)
			if err != nil {
				return err
			}
			if *asJSON {
				return a.PrintRaw(response.Body)
			}
			a.Say("Added the Kafka cluster %s. `platform subscriptions create kafka://%[1]s/<topic> service://<service>/<handler>` reads from it.", cluster.Name)
			a.showNotices(cluster.Info)
			return nil
		})
	})
	return cmd
}

func (a *commands) kafkaClustersList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List Kafka clusters", Args: cobra.NoArgs, Example: "  platform kafka-clusters list",
	}
	asJSON := command.JSONFlag(cmd.Flags())
	a.Shows(cmd, func(ctx context.Context, _ []string) error {
		list, response, err := a.Client.KafkaClusters(ctx)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.PrintRaw(response.Body)
		}
		if len(list.Clusters) == 0 {
			a.Say("No Kafka clusters. `platform kafka-clusters create` adds one.")
			return nil
		}
		rows := make([][]string, len(list.Clusters))
		for i, c := range list.Clusters {
			rows[i] = []string{term.Clean(c.Name), term.Clean(brokersOf(c.Properties)), definedIn(&c)}
		}
		a.Print.Table("", []string{"NAME", "BROKERS", "DEFINED-IN"}, rows)
		return nil
	})
	return cmd
}

func brokersOf(properties map[string]string) string {
	if list := properties["bootstrap.servers"]; list != "" {
		return list
	}
	return properties["metadata.broker.list"]
}

// propertyRows returns name and value of the properties, sorted by name.
func propertyRows(properties map[string]string) [][]string {
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		rows = append(rows, []string{term.Clean(name), term.Clean(properties[name])})
	}
	return rows
}

func definedIn(c *client.KafkaCluster) string {
	if c.Static {
		return "configuration"
	}
	return "admin API"
}

func (a *commands) kafkaClustersDescribe() *cobra.Command {
	return command.ViewResponse(a.App, &cobra.Command{
		Use: "describe <name>", Aliases: []string{"get", "show"}, Short: "Show a Kafka cluster and its subscriptions", Args: cobra.ExactArgs(1),
		Example: "  platform kafka-clusters describe main",
	}, func(ctx context.Context, args []string) (client.KafkaCluster, *client.Response, error) {
		return a.kafkaCluster(ctx, args[0])
	}, func(_ context.Context, c client.KafkaCluster) error {
		created := ""
		if !c.Static {
			created = a.Print.Time(c.CreatedAt)
		}
		a.Print.Fields("", term.Field{Name: "Name", Value: term.Clean(c.Name)}, term.Field{Name: "Defined in", Value: definedIn(&c)}, term.Field{Name: "Created", Value: created})
		a.Print.Println()
		a.Print.Heading("Properties")
		a.Print.Table("", []string{"NAME", "VALUE"}, propertyRows(c.Properties))
		if len(c.Subscriptions) > 0 {
			a.Print.Println()
			a.Print.Heading("Subscriptions")
			var rows [][]string
			for i := range c.Subscriptions {
				s := &c.Subscriptions[i]
				rows = append(rows, []string{s.ID, term.Clean(s.Source), term.Clean(s.Sink), a.streamState(s.State)})
			}
			a.Print.Table("", []string{"ID", "SOURCE", "SINK", "STATE"}, rows)
		}
		a.showNotices(c.Info)
		return nil
	})
}

func (a *commands) kafkaClustersEdit() *cobra.Command {
	cmd := &cobra.Command{
		Use: "edit <name> [property=value]...", Aliases: []string{"patch"}, Short: "Change properties of a Kafka cluster", Args: cobra.MinimumNArgs(1),
		Long: `Changes the properties that are given; its subscriptions reconnect. With --replace, these replace all properties of the
cluster. With --edit, all properties can be edited.`,
		Example: "  platform kafka-clusters edit main bootstrap.servers=127.0.0.1:9093 --unset client.rack\n  platform kafka-clusters edit main --edit",
	}
	set := cmd.Flags().StringArray("set", nil, "set this property=value, as an argument does (repeatable)")
	unset := cmd.Flags().StringSlice("unset", nil, "remove these properties (separated by commas)")
	replace := cmd.Flags().Bool("replace", false, "remove all other properties")
	file := propertiesFlag(cmd.Flags())
	edit := editFlag(cmd.Flags())
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		changed, err := a.properties(*file, slices.Concat(args[1:], *set))
		if err != nil {
			return err
		}
		if len(changed) == 0 && len(*unset) == 0 && !*edit {
			return command.UsageError("nothing to change: give a property=value, --unset, --file or --edit")
		}
		current, _, err := a.Client.KafkaCluster(ctx, args[0])
		if err != nil {
			return err
		}
		values := maps.Clone(current.Properties) // the server keeps secrets that are shown as ***
		if *replace || values == nil {
			values = map[string]string{}
		}
		maps.Copy(values, changed)
		for _, name := range *unset {
			delete(values, name)
		}
		return a.editProperties(ctx, *edit, values, func(values map[string]string) error {
			if *edit && maps.Equal(values, current.Properties) {
				a.Say("Nothing was changed.")
				return nil
			}
			cluster, response, err := a.Client.EditKafkaCluster(ctx, args[0], values)
			if err != nil {
				return err
			}
			if *asJSON {
				return a.PrintRaw(response.Body)
			}
			a.Say("Changed the Kafka cluster %s.", cluster.Name)
			a.showNotices(cluster.Info)
			return nil
		})
	})
	return cmd
}

func (a *commands) kafkaClustersDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete <name>", Aliases: []string{"rm"}, Short: "Delete a Kafka cluster", Args: cobra.ExactArgs(1), Example: "  platform kafka-clusters delete main",
	}
	force := cmd.Flags().Bool("force", false, "delete it even if subscriptions read from it, which stops them")
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		if _, _, err := a.kafkaCluster(ctx, args[0]); err != nil {
			return err
		}
		if err := a.Confirm(fmt.Sprintf("Delete the Kafka cluster %s?", args[0])); err != nil {
			return err
		}
		if err := a.Client.DeleteKafkaCluster(ctx, args[0], *force); err != nil {
			return err
		}
		a.Say("Deleted the Kafka cluster %s.", args[0])
		return nil
	})
	return cmd
}

// kafkaCluster returns a Kafka cluster. The error says where to find the names.
func (a *commands) kafkaCluster(ctx context.Context, name string) (client.KafkaCluster, *client.Response, error) {
	cluster, response, err := a.Client.KafkaCluster(ctx, name)
	if client.HasStatus(err, http.StatusNotFound) {
		err = command.WithHint(err, "`platform kafka-clusters list` shows the Kafka clusters.")
	}
	return cluster, response, err
}
