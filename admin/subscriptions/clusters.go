package subscriptions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/errcode"
	"platform/internal/subscription"
	"platform/metadata"
)

// kafkaClusterRequest is the body of POST /kafka-clusters.
type kafkaClusterRequest struct {
	Name       string            `json:"name"`
	Properties map[string]string `json:"properties"`
}

// kafkaClusterEdit is the body of PATCH /kafka-clusters/:cluster.
type kafkaClusterEdit struct {
	Properties map[string]string `json:"properties"`
}

// kafkaClusterView is a Kafka cluster as shown to users.
type kafkaClusterView struct {
	Name          string              `json:"name"`
	Properties    map[string]string   `json:"properties"`
	CreatedAt     rest.Timestamp      `json:"created_at"` // for static clusters, the start time of the node
	Static        bool                `json:"static"`
	Subscriptions *[]subscriptionView `json:"subscriptions,omitempty"`
	Info          []rest.Notice       `json:"info,omitempty"`
}

// kafkaClusters returns the clusters of the configuration and of the metadata, sorted by name.
func (s *Server) kafkaClusters() []subscription.Cluster {
	list := slices.Clone(s.cfg.KafkaClusters)
	for _, c := range s.registry.KafkaClusters() {
		if !slices.ContainsFunc(s.cfg.KafkaClusters, func(static subscription.Cluster) bool { return static.Name == c.Name }) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b subscription.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// kafkaCluster returns a cluster by name; those of the configuration take precedence.
func (s *Server) kafkaCluster(name string) (subscription.Cluster, bool) {
	list := s.kafkaClusters()
	at := slices.IndexFunc(list, func(c subscription.Cluster) bool { return c.Name == name })
	if at < 0 {
		return subscription.Cluster{}, false
	}
	return list[at], true
}

func (s *Server) createKafkaCluster(c echo.Context) error {
	var r kafkaClusterRequest
	if err := s.cfg.Bodies.ReadJSON(c, &r); err != nil {
		return err
	}
	cluster := subscription.Cluster{Name: r.Name, Properties: r.Properties}
	if err := cluster.Check(); err != nil {
		return err
	}
	rest.Concerns(c, cluster.Name)
	if err := rejectLocalFiles(r.Properties); err != nil {
		return err
	}
	if _, err := subscription.Unredact(r.Properties, nil); err != nil {
		return err
	}
	if existing, known := s.kafkaCluster(r.Name); known {
		return clusterExists(&existing)
	}
	if err := s.requireKeyForProperties(c.Request().Context(), r.Properties); err != nil {
		return err
	}
	cluster, err := s.storeKafkaCluster(c.Request().Context(), cluster)
	if errors.Is(err, metadata.ErrClusterExists) {
		return clusterExists(&subscription.Cluster{Name: r.Name})
	}
	if err != nil {
		return subscriptionError(err)
	}
	c.Response().Header().Set("Location", "kafka-clusters/"+cluster.Name)
	return rest.Respond(c, http.StatusCreated, viewKafkaCluster(&cluster))
}

// rejectLocalFiles rejects properties that name files: API clients must not choose which files the
// nodes read.
func rejectLocalFiles(properties map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if stem, local := strings.CutSuffix(name, ".location"); local {
			return rest.Unprocessable("the property '%s' names a file of the server, which only clusters of the configuration (ingress.kafka-clusters) can use; put the text of the file into '%s.pem'", name, stem)
		}
	}
	return nil
}

// requireKeyForProperties is Config.RequireSharedKey for properties of Kafka clients, if there are secrets among them.
func (s *Server) requireKeyForProperties(ctx context.Context, properties map[string]string) error {
	for name := range properties {
		if subscription.Secret(name) {
			return s.cfg.RequireSharedKey(ctx, "credentials")
		}
	}
	return nil
}

func clusterExists(c *subscription.Cluster) error {
	if c.Static {
		return staticCluster(c.Name)
	}
	return &rest.Error{Status: http.StatusConflict, Message: fmt.Sprintf("the Kafka cluster '%s' already exists; PATCH /kafka-clusters/%s changes its properties", c.Name, c.Name)}
}

func staticCluster(name string) error {
	return &rest.Error{Status: http.StatusConflict, Message: fmt.Sprintf("the Kafka cluster '%s' is defined by the configuration of the server (ingress.kafka-clusters) and can only be changed there", name)}
}

func noKafkaCluster(name string) error {
	const shown = 253 // no name is longer
	if len(name) > shown {
		name = strings.ToValidUTF8(name[:shown], "") + "…"
	}
	return &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("The requested Kafka cluster '%s' does not exist", name)}
}

func (s *Server) listKafkaClusters(c echo.Context) error {
	views := []kafkaClusterView{}
	list := s.kafkaClusters()
	for i := range list {
		views = append(views, viewKafkaCluster(&list[i]))
	}
	return rest.Respond(c, http.StatusOK, map[string]any{"clusters": views})
}

func (s *Server) getKafkaCluster(c echo.Context) error {
	include, err := rest.QueryBool(c, "include_subscriptions")
	if err != nil {
		return err
	}
	cluster, known := s.kafkaCluster(c.Param("kafka_cluster"))
	if !known {
		return noKafkaCluster(c.Param("kafka_cluster"))
	}
	view := viewKafkaCluster(&cluster)
	if include || c.QueryParam("include_subscriptions") == "" { // existing clients require the field
		list, _ := s.registry.Subscriptions()
		statuses := s.cfg.Streams.Statuses(c.Request().Context(), "", false)
		subs := []subscriptionView{}
		for i := range list {
			if list[i].Cluster == cluster.Name {
				subs = append(subs, s.viewSubscription(&list[i], statuses, false))
			}
		}
		view.Subscriptions = &subs
	}
	return rest.Respond(c, http.StatusOK, view)
}

// mayChangeKafkaCluster returns an error unless a cluster exists and is not part of the configuration.
func (s *Server) mayChangeKafkaCluster(name string) error {
	cluster, known := s.kafkaCluster(name)
	switch {
	case !known:
		return noKafkaCluster(name)
	case cluster.Static:
		return staticCluster(name)
	}
	return nil
}

func (s *Server) patchKafkaCluster(c echo.Context) error {
	name := c.Param("kafka_cluster")
	var r kafkaClusterEdit
	if err := s.cfg.Bodies.ReadJSON(c, &r); err != nil {
		return err
	}
	if err := s.mayChangeKafkaCluster(name); err != nil {
		return err
	}
	if r.Properties == nil {
		return rest.Unprocessable("the field 'properties' is missing: all properties that the cluster is to have")
	}
	if err := rejectLocalFiles(r.Properties); err != nil {
		return err
	}
	if err := s.requireKeyForProperties(c.Request().Context(), r.Properties); err != nil {
		return err
	}
	cluster, err := s.registry.ChangeKafkaCluster(c.Request().Context(), name, func(current map[string]string) (map[string]string, error) {
		return subscription.Unredact(r.Properties, current)
	})
	if err != nil {
		return subscriptionError(err)
	}
	return rest.Respond(c, http.StatusOK, viewKafkaCluster(&cluster))
}

func (s *Server) deleteKafkaCluster(c echo.Context) error {
	name := c.Param("kafka_cluster")
	force, err := rest.QueryBool(c, "force")
	if err != nil {
		return err
	}
	if err := s.mayChangeKafkaCluster(name); err != nil {
		return err
	}
	if err := s.registry.DeleteKafkaCluster(c.Request().Context(), name, force); err != nil {
		return subscriptionError(err)
	}
	return rest.Done(c, http.StatusAccepted)
}

func viewKafkaCluster(c *subscription.Cluster) kafkaClusterView {
	view := kafkaClusterView{Name: c.Name, Properties: subscription.Redact(c.Properties), CreatedAt: rest.TimestampOf(c.CreatedAt), Static: c.Static}
	if c.Unreadable != nil {
		view.Info = append(view.Info, rest.Notice{Code: errcode.META0020, Message: "the cluster is not used by this node: " + errcode.Detail(c.Unreadable)})
	}
	view.Info = append(view.Info, propertyNotices(c.Properties)...)
	if n := c.Incomplete(); n != "" && c.Unreadable == nil {
		view.Info = append(view.Info, rest.Notice{Message: n})
	}
	return view
}

func itoa(n int32) string { return strconv.FormatInt(int64(n), 10) }
