package dev

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"sync"
)

// node is a server process.
type node struct {
	name  string
	ip    string // listen address
	ports Ports

	mu      sync.Mutex // covers process
	process *Process
}

func (n *node) current() *Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

func (n *node) set(p *Process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.process = p
}

// env is the configuration of the node.
func (n *node) env(r *running) []string {
	env := []string{
		"PLATFORM_BASE_DIR=" + r.o.Dir, "PLATFORM_NODE_NAME=" + n.name, "PLATFORM_BIND_IP=" + n.ip,
		"PLATFORM_BIND_PORT=" + strconv.Itoa(n.ports.Node),
		"PLATFORM_INGRESS__BIND_PORT=" + strconv.Itoa(n.ports.Ingress),
		"PLATFORM_ADMIN__BIND_PORT=" + strconv.Itoa(n.ports.Admin),
	}
	if r.token != "" {
		env = append(env, tokenVariable+"="+r.token)
	}
	if len(r.nodes) == 1 {
		return env
	}
	var addresses []string
	for _, other := range r.nodes {
		addresses = append(addresses, net.JoinHostPort(other.ip, strconv.Itoa(other.ports.Node)))
	}
	list, _ := json.Marshal(addresses) // cannot fail for strings
	return append(env, fmt.Sprintf("PLATFORM_BOOTSTRAP_EXPECT=%d", len(r.nodes)), "PLATFORM_METADATA_CLIENT__ADDRESSES="+string(list))
}

func (n *node) ingress(path string) string { return n.url(n.ports.Ingress, path) }
func (n *node) admin(path string) string   { return n.url(n.ports.Admin, path) }

// url is the address of a port as seen from this machine.
func (n *node) url(port int, path string) string {
	host := n.ip
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(port)) + path
}
