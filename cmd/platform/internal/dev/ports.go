package dev

import (
	"fmt"
	"net"
	"strconv"
)

// sampleIP is the address of the sample service, which only this machine can reach.
const sampleIP = "127.0.0.1"

func (o *Options) sampleAddress() string {
	return net.JoinHostPort(sampleIP, strconv.Itoa(o.SamplePort))
}

// randomPorts returns free ports. It opens all of them before it closes the first, so that
// they differ.
func (o *Options) randomPorts(nodes []*node) error {
	free := func(ip string, port *int) (release func(), err error) {
		listener, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		*port = listener.Addr().(*net.TCPAddr).Port
		return func() { listener.Close() }, nil
	}
	wanted := map[*int]string{}
	for _, n := range nodes {
		for _, port := range []*int{&n.ports.Ingress, &n.ports.Admin, &n.ports.Node} {
			wanted[port] = n.ip
		}
	}
	if o.Sample != nil {
		wanted[&o.SamplePort] = sampleIP
	}
	for port, ip := range wanted {
		release, err := free(ip, port)
		if err != nil {
			return err
		}
		defer release()
	}
	return nil
}

// checkPorts fails if one of the ports is in use. Otherwise the process that holds it might
// respond in place of the new one.
func (o *Options) checkPorts(nodes []*node) error {
	for _, n := range nodes {
		of := ""
		if len(nodes) > 1 {
			of = " of " + n.name
		}
		for _, p := range []struct {
			port      int
			use, flag string
		}{
			{n.ports.Ingress, "ingress", "--ingress-port"}, {n.ports.Admin, "admin API", "--admin-port"}, {n.ports.Node, "node port", "--node-port"},
		} {
			if err := checkPort(n.ip, p.port, p.use+of, p.flag); err != nil {
				return err
			}
		}
	}
	if o.Sample == nil {
		return nil
	}
	return checkPort(sampleIP, o.SamplePort, "sample service", "--sample-port")
}

func checkPort(ip string, port int, use, flag string) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
	if err != nil {
		return &HintedError{
			fmt.Errorf("port %d of the %s cannot be used: %w", port, use, err),
			"If another server is running, use that one (`platform whoami`) or stop it. " + flag + " sets another port, --use-random-ports chooses free ones.",
		}
	}
	if err := listener.Close(); err != nil {
		return fmt.Errorf("close port %d: %w", port, err)
	}
	return nil
}
