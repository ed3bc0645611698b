package admin

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/errcode"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/metadata"
)

// secretRegistry encrypts the secrets in the metadata.
type secretRegistry interface {
	// Secrets returns how secrets are stored.
	Secrets() metadata.SecretsState
	// RotateSecrets encrypts them with the newest key.
	RotateSecrets(context.Context) (int, error)
}

// secretsView describes how the secrets in the metadata are stored.
type secretsView struct {
	Encrypted   bool             `json:"encrypted"`
	Keys        []secretKeyView  `json:"keys"`
	Unencrypted int              `json:"unencrypted"`
	Unreadable  []string         `json:"unreadable"`
	Nodes       []nodeSecretKeys `json:"nodes"`
	Rotated     *int             `json:"rotated,omitempty"`
}

type secretKeyView struct {
	ID      string `json:"id"`
	Newest  bool   `json:"newest"`
	Missing bool   `json:"missing"`
	Secrets int    `json:"secrets"`
}

type nodeSecretKeys struct {
	ID      ids.Node `json:"id"`
	Name    string   `json:"name"`
	Keys    []string `json:"keys"`
	Problem string   `json:"problem,omitempty"`
}

func (s *Server) getSecrets(c echo.Context) error {
	view, err := s.viewSecrets(c)
	if err != nil {
		return err
	}
	return rest.Respond(c, http.StatusOK, view)
}

// rotateSecrets encrypts all secrets with the newest key of this node, which all nodes must have.
func (s *Server) rotateSecrets(c echo.Context) error {
	force, err := rest.QueryBool(c, "force")
	if err != nil {
		return err
	}
	if view, err := s.viewSecrets(c); err != nil {
		return err
	} else if problems := view.problems(); len(problems) > 0 && !force {
		return errcode.New(errcode.META0020, "no secret was encrypted: %s; with force this is ignored", strings.Join(problems, "; "))
	}
	rotated, err := s.registry.RotateSecrets(c.Request().Context())
	if err != nil {
		return err
	}
	if rotated == 0 {
		rest.ChangedNothing(c)
	}
	s.log.Info("secrets encrypted with the newest key", "secrets", rotated)
	view, err := s.viewSecrets(c)
	if err != nil {
		return err
	}
	view.Rotated = &rotated
	return rest.Respond(c, http.StatusOK, view)
}

// problems returns why nodes could not decrypt secrets that are encrypted with the newest key.
func (v *secretsView) problems() (list []string) {
	for _, n := range v.Nodes {
		if n.Problem != "" {
			list = append(list, "node "+n.Name+" "+n.Problem)
		}
	}
	return list
}

func (s *Server) viewSecrets(c echo.Context) (*secretsView, error) {
	state, err := s.clusterState(c.Request().Context())
	if err != nil {
		return nil, err
	}
	secrets := s.registry.Secrets()
	view := &secretsView{
		Encrypted: len(secrets.Keys) > 0, Keys: keyViews(&secrets), Unencrypted: secrets.Clear,
		Unreadable: secrets.Unreadable, Nodes: []nodeSecretKeys{},
	}
	for i := range state.Nodes {
		n := &state.Nodes[i]
		view.Nodes = append(view.Nodes, nodeSecretKeys{n.ID, n.Name, append([]string{}, n.SecretKeys...), keyProblem(&secrets, n)})
	}
	return view, nil
}

// keyProblem returns why a node may be unable to decrypt what this node encrypts.
func keyProblem(secrets *metadata.SecretsState, n *NodeState) string {
	switch {
	case !n.Answers:
		return "does not respond; start or remove it"
	case len(secrets.Keys) > 0 && !slices.Contains(n.SecretKeys, secrets.Keys[0]):
		return fmt.Sprintf("does not have the key %s; add it to its security.secrets.key-file", secrets.Keys[0])
	case len(secrets.Keys) > 0 && n.SecretKeys[0] != secrets.Keys[0]:
		return fmt.Sprintf("encrypts with another key, %s; make the first line of security.secrets.key-file the same on all nodes", n.SecretKeys[0])
	case len(secrets.Keys) == 0 && len(n.SecretKeys) > 0:
		return "has keys, which this node does not have"
	}
	return ""
}

// requireSharedKey rejects changes that would store secrets encrypted with a key that other nodes do not
// have: they could neither invoke the deployment nor read the topics. What nodes that do not respond
// have is unknown. what names the secrets.
func (s *Server) requireSharedKey(ctx context.Context, what string) error {
	keys := s.registry.Secrets().Keys
	if len(keys) == 0 {
		return nil
	}
	state, err := s.clusterState(ctx)
	if err != nil || state.Feature.Level < uint32(feature.Level4) { // below it, nothing is encrypted
		return err
	}
	var lacking []string
	for i := range state.Nodes {
		if n := &state.Nodes[i]; n.Answers && !slices.Contains(n.SecretKeys, keys[0]) {
			lacking = append(lacking, n.Name)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	return errcode.New(errcode.META0020, "nothing was stored: the %s would be encrypted with the key %s of this node, which other nodes do not have: %s; add it to their security.secrets.key-file first",
		what, keys[0], strings.Join(lacking, ", "))
}

// missingKeys describes the nodes that cannot decrypt stored secrets.
func missingKeys(state *ClusterState, used map[string]int) (problems []string) {
	for i := range state.Nodes {
		n := &state.Nodes[i]
		if !n.Answers {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(used)) {
			if !slices.Contains(n.SecretKeys, id) {
				problems = append(problems, fmt.Sprintf("node %s (%s) cannot decrypt %s: it does not have the key %s (security.secrets.key-file)",
					n.Name, n.ID, counted(used[id], "stored secret", "stored secrets"), id))
			}
		}
	}
	return problems
}

// keyViews returns the keys of this node, then missing ones.
func keyViews(secrets *metadata.SecretsState) []secretKeyView {
	keys := []secretKeyView{}
	for i, id := range secrets.Keys {
		keys = append(keys, secretKeyView{ID: id, Newest: i == 0, Secrets: secrets.Used[id]})
	}
	for _, id := range slices.Sorted(maps.Keys(secrets.Used)) {
		if !slices.Contains(secrets.Keys, id) {
			keys = append(keys, secretKeyView{ID: id, Missing: true, Secrets: secrets.Used[id]})
		}
	}
	return keys
}
