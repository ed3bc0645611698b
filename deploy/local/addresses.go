package main

import (
	"encoding/json"
	"fmt"
	"net"
	"time"
)

// address is where a port is, as seen from this machine.
func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// ports of a node, by what they are for.
func (o options) ports(number int) map[string]int {
	return map[string]int{
		"-ingress-port": o.ingressPort + number - 1, "-admin-port": o.adminPort + number - 1, "-node-port": o.nodePort + number - 1,
	}
}

// checkPorts says which port is taken before anything is started.
func (o options) checkPorts() error {
	for number := 1; number <= o.nodes; number++ {
		for flag, port := range o.ports(number) {
			l, err := net.Listen("tcp", address(port))
			if err != nil {
				return fmt.Errorf("port %d of node n%d is not free (%w); stop what uses it or choose others: make cluster-local ARGS='%s N'", port, number, err, flag)
			}
			l.Close()
		}
	}
	return nil
}

// env is the configuration of a node: the same for all, but for the ports.
func (o options) env(number int) []string {
	var seeds []string
	for i := range o.nodes {
		seeds = append(seeds, address(o.nodePort+i))
	}
	list, _ := json.Marshal(seeds) // strings always can be
	return []string{
		fmt.Sprintf("PLATFORM_BIND_PORT=%d", o.nodePort+number-1),
		fmt.Sprintf("PLATFORM_INGRESS__BIND_PORT=%d", o.ingressPort+number-1),
		fmt.Sprintf("PLATFORM_ADMIN__BIND_PORT=%d", o.adminPort+number-1),
		fmt.Sprintf("PLATFORM_BOOTSTRAP_EXPECT=%d", o.nodes),
		"PLATFORM_METADATA_CLIENT__ADDRESSES=" + string(list),
	}
}

func (o options) ingress(number int) string { return "http://" + address(o.ingressPort+number-1) }
func (o options) admin(number int) string   { return "http://" + address(o.adminPort+number-1) }

// show tells where the nodes are and what to try.
func (o options) show(nodes []*node, took time.Duration) {
	fmt.Fprintf(o.out, "A cluster of %d nodes is up after %s. Data and logs are in %s.\n\n", o.nodes, took.Round(time.Millisecond), o.dir)
	fmt.Fprintf(o.out, "%-6s%-10s%-24s%-24s\n", "NODE", "PID", "INGRESS", "ADMIN API")
	for _, n := range nodes {
		fmt.Fprintf(o.out, "n%-5d%-10d%-24s%-24s\n", n.number, n.current().PID(), o.ingress(n.number), o.admin(n.number))
	}
	first, last := nodes[0], nodes[len(nodes)-1]
	fmt.Fprintf(o.out, `
In another terminal:

  # how the cluster is; every node knows
  PLATFORM_ADMIN_URL=%[1]s bin/platform cluster status --watch
  # a service: registered on one node, called on another
  bin/greeter -listen 127.0.0.1:9080
  curl %[2]s/deployments --json '{"uri": "http://127.0.0.1:9080"}'
  curl %[3]s/Greeter/greet --json '"Ada"'
  # a node dies; it comes back after %[4]s
  kill -9 %[5]d

Ctrl-C stops the nodes.
`, o.admin(last.number), o.admin(first.number), o.ingress(last.number), o.downTime, nodes[len(nodes)/2].current().PID())
}
