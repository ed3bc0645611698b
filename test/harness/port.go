package harness

// FreePorts returns n different TCP ports that are free on 127.0.0.1. Where the system
// allows it they are kept for this process: nobody else gets them who asks for any
// port, but whoever names one can listen on it.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		port, err := keepPort()
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
