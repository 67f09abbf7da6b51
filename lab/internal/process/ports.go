package process

import (
	"fmt"
	"net"
	"strconv"
)

// FreePorts returns n different ports on 127.0.0.1 that nothing listens on now. All are held open until the last one
// is found, so that the kernel can't hand out the same one twice. Another process can still take one before it is
// used: callers start again with new ports when that happens.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port on 127.0.0.1: %w", err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// PortFree reports whether a port can be listened on now.
func PortFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	l.Close()
	return true
}
