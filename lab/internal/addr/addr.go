package addr

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// Pods is the range pods are recorded in.
var Pods = netip.MustParsePrefix("198.18.0.0/15")

// Total is how many addresses Pods holds.
const Total = 1 << 17

// Listen returns the loopback address behind a recorded pod address. ok is false, and ip comes
// back unchanged, for an address outside Pods.
func Listen(ip netip.Addr) (listen netip.Addr, ok bool) {
	if !Pods.Contains(ip) {
		return ip, false
	}
	b := ip.As4()
	b[0] = 127
	return netip.AddrFrom4(b), true
}

// Recorded is the inverse of Listen.
func Recorded(listen netip.Addr) (ip netip.Addr, ok bool) {
	if !listen.Is4() {
		return listen, false
	}
	b := listen.As4()
	if b[0] != 127 || (b[1] != 18 && b[1] != 19) {
		return listen, false
	}
	b[0] = 198
	return netip.AddrFrom4(b), true
}

// At returns the nth address of Pods, n in [0, Total).
func At(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{198, byte(18 + n>>16), byte(n >> 8), byte(n)})
}

// Index is the inverse of At.
func Index(ip netip.Addr) (n int, ok bool) {
	if !Pods.Contains(ip) {
		return 0, false
	}
	b := ip.As4()
	return int(b[1]-18)<<16 | int(b[2])<<8 | int(b[3]), true
}

// Translate rewrites the host of a host:port when it is a recorded pod address.
func Translate(hostport string) string {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return hostport
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return hostport
	}
	listen, ok := Listen(ip)
	if !ok {
		return hostport
	}
	return net.JoinHostPort(listen.String(), port)
}

var dialer = net.Dialer{Timeout: 2 * time.Second, KeepAlive: 15 * time.Second}

// Dial connects to a pod by its recorded address. It has the shape of http.Transport.DialContext;
// other addresses are dialed as they are.
func Dial(ctx context.Context, network, hostport string) (net.Conn, error) {
	return dialer.DialContext(ctx, network, Translate(hostport))
}
