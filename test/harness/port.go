package harness

// FreePorts returns n different TCP ports that are free on 127.0.0.1. On Linux they
// stay reserved until this process exits: the kernel does not assign them to sockets
// that bind to port 0, but a process can listen on them explicitly.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		port, err := reservePort()
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
