package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// LogLevels are the log levels of nodes.
type LogLevels struct {
	Nodes []NodeLogLevels `json:"nodes"`
}

// NodeLogLevels are the log levels of one node.
type NodeLogLevels struct {
	Name       string     `json:"name"`
	Filter     string     `json:"log_filter"`
	Configured string     `json:"configured_log_filter"`
	Until      *time.Time `json:"until"` // nil: the configured filter is in effect, or the other one until the node restarts
	Targets    []string   `json:"targets"`
	Reason     string     `json:"reason"` // why they are not known or were not changed
}

// LogLevelsChange sets the log levels of nodes.
type LogLevelsChange struct {
	Filter string   `json:"log_filter"`
	For    string   `json:"for,omitempty"`
	Nodes  []string `json:"nodes,omitempty"`
}

const logLevelsPath = "/cluster/log-levels"

// LogLevels returns the log levels of the named nodes, or of all.
func (c *Client) LogLevels(ctx context.Context, nodes []string) (levels LogLevels, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodGet, logLevelsOf(nodes), nil, &levels)
	return levels, response, err
}

// SetLogLevels changes the log levels of nodes.
func (c *Client) SetLogLevels(ctx context.Context, change LogLevelsChange) (levels LogLevels, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodPut, logLevelsPath, change, &levels)
	return levels, response, err
}

// ResetLogLevels restores the configured log levels of the named nodes, or of all.
func (c *Client) ResetLogLevels(ctx context.Context, nodes []string) (levels LogLevels, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodDelete, logLevelsOf(nodes), nil, &levels)
	return levels, response, err
}

func logLevelsOf(nodes []string) string {
	if len(nodes) == 0 {
		return logLevelsPath
	}
	return logLevelsPath + "?" + url.Values{"node": nodes}.Encode()
}
