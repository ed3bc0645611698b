package harness

import "platform/test/harness/ports"

// FreePorts returns n different TCP ports that are free on 127.0.0.1 and stay reserved until this
// process exits, see package ports.
func FreePorts(n int) ([]int, error) {
	free := make([]int, 0, n)
	for range n {
		port, err := ports.Reserve()
		if err != nil {
			return nil, err
		}
		free = append(free, port)
	}
	return free, nil
}
