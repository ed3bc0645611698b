package client

import (
	"context"
	"net/http"
)

// Secrets describes how the secrets in the metadata are stored.
type Secrets struct {
	Encrypted   bool             `json:"encrypted"`
	Keys        []SecretKey      `json:"keys"`
	Unencrypted int              `json:"unencrypted"`
	Unreadable  []string         `json:"unreadable"`
	Nodes       []NodeSecretKeys `json:"nodes"`
	Rotated     int              `json:"rotated"`
}

// SecretKey is a key with which secrets are encrypted, or that the node has.
type SecretKey struct {
	ID      string `json:"id"`
	Newest  bool   `json:"newest"`  // it encrypts
	Missing bool   `json:"missing"` // the node does not have it
	Secrets int    `json:"secrets"`
}

// NodeSecretKeys are the keys of a node.
type NodeSecretKeys struct {
	Name    string   `json:"name"`
	Keys    []string `json:"keys"`    // the newest first
	Problem string   `json:"problem"` // why it may be unable to decrypt secrets
}

// Secrets returns how the secrets in the metadata are stored.
func (c *Client) Secrets(ctx context.Context) (secrets Secrets, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodGet, "/cluster/secrets", nil, &secrets)
	return secrets, response, err
}

// RotateSecrets encrypts all secrets with the newest key of the node.
func (c *Client) RotateSecrets(ctx context.Context, force bool) (secrets Secrets, response *Response, err error) {
	path := "/cluster/secrets/rotate"
	if force {
		path += "?force=true"
	}
	response, err = c.adminJSON(ctx, http.MethodPost, path, nil, &secrets)
	return secrets, response, err
}
