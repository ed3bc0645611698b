package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"platform/internal/subscription"
)

// KafkaClusters are Kafka clusters of the configuration: tables with a name, brokers, and
// properties of Kafka clients.
type KafkaClusters []subscription.Cluster

const expectedClusters = `a list of tables such as { name = "main", brokers = ["127.0.0.1:9092"] }, with properties of Kafka clients`

// isClusters reports whether a value is a list of Kafka clusters.
func isClusters(v reflect.Value) bool { return v.Type() == reflect.TypeFor[KafkaClusters]() }

// setClustersText reads the TOML or JSON text of a variable or flag.
func setClustersText(v reflect.Value, text string) error {
	var parsed struct{ List []any }
	if err := toml.Unmarshal([]byte("List = "+text), &parsed); err == nil {
		return setClusters(v, parsed.List)
	}
	table, err := inlineJSON(`{"List":` + text + `}`)
	if list, ok := table["List"].([]any); err == nil && ok {
		return setClusters(v, list)
	}
	return errors.New("expected " + expectedClusters + ", got " + quoted(text))
}

func setClusters(v reflect.Value, items []any) error {
	var clusters KafkaClusters
	for _, item := range items {
		table, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("expected %s, got a list with %v", expectedClusters, item)
		}
		c, err := clusterOf(table)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(clusters, func(other subscription.Cluster) bool { return other.Name == c.Name }) {
			return fmt.Errorf("the cluster %s occurs twice", c.Name)
		}
		clusters = append(clusters, c)
	}
	v.Set(reflect.ValueOf(clusters))
	return nil
}

func clusterOf(table map[string]any) (subscription.Cluster, error) {
	c := subscription.Cluster{Static: true, Properties: map[string]string{}}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		value := table[key]
		switch key {
		case "name":
			name, ok := value.(string)
			if !ok {
				return c, fmt.Errorf("expected a name, got %v", value)
			}
			c.Name = name
		case "brokers":
			list, err := joinedText(value)
			if err != nil {
				return c, fmt.Errorf("brokers: %w", err)
			}
			if err := setProperty(c.Properties, "bootstrap.servers", list); err != nil {
				return c, err
			}
		case "properties", "additional-options":
			nested, ok := value.(map[string]any)
			if !ok {
				return c, fmt.Errorf("expected a table of properties, got %v", value)
			}
			if err := flatten(c.Properties, "", nested); err != nil {
				return c, err
			}
		default:
			if err := flatten(c.Properties, "", map[string]any{key: value}); err != nil {
				return c, err
			}
		}
	}
	if err := c.Check(); err != nil {
		return c, fmt.Errorf("the cluster %q: %w", c.Name, err)
	}
	return c, nil
}

// joinedText returns a text, or the items of a list separated by commas, as properties of librdkafka have them.
func joinedText(value any) (string, error) {
	if text, ok := value.(string); ok {
		return text, nil
	}
	list, ok := value.([]any)
	if !ok {
		return "", fmt.Errorf("expected a text or a list of texts, got %v", value)
	}
	var texts []string
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			return "", fmt.Errorf("expected a list of texts, got one with %v", item)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ","), nil
}

// flatten adds the values of nested tables, which TOML makes of dotted names.
func flatten(into map[string]string, prefix string, table map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(table)) {
		name := prefix + key
		var err error
		switch value := table[key].(type) {
		case string:
			err = setProperty(into, name, value)
		case bool:
			err = setProperty(into, name, strconv.FormatBool(value))
		case int64:
			err = setProperty(into, name, strconv.FormatInt(value, 10))
		case float64:
			err = setProperty(into, name, strconv.FormatFloat(value, 'f', -1, 64))
		case map[string]any:
			err = flatten(into, name+".", value)
		default:
			var text string
			if text, err = joinedText(value); err != nil {
				err = fmt.Errorf("the property %s: %w", name, err)
				break
			}
			err = setProperty(into, name, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setProperty sets a property, which can be written in several places.
func setProperty(into map[string]string, name, value string) error {
	if _, exists := into[name]; exists {
		return fmt.Errorf("the property %s occurs twice", name)
	}
	into[name] = value
	return nil
}

// clustersText returns TOML; shown converts the properties.
func clustersText(clusters KafkaClusters, shown func(map[string]string) map[string]string) string {
	items := make([]string, len(clusters))
	for i, c := range clusters {
		items[i] = "{ name = " + quoteTOML(c.Name) + ", properties = " + tableText(shown(c.Properties)) + " }"
	}
	return "[" + strings.Join(items, ", ") + "]"
}
