package prom

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"
)

const howToAllow = "; the operator's setting canaryAnalysis.allowedServerAddresses says which are"

// guard decides where a connection may go.
type guard struct {
	// free is for addresses of the operator.
	free bool
	// named is true when the host matches a pattern of the list, or there is no list.
	named    bool
	networks []netip.Prefix

	mu sync.Mutex
	// proxies are the addresses that the environment sends requests through.
	proxies map[string]bool
}

// newGuard reads the operator's list for one address.
func newGuard(u *url.URL, allowed []string) *guard {
	g := &guard{named: len(allowed) == 0, proxies: map[string]bool{}}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	for _, entry := range allowed {
		if network, err := netip.ParsePrefix(entry); err == nil {
			g.networks = append(g.networks, network)
		} else if ok, err := path.Match(strings.ToLower(entry), host); ok && err == nil {
			g.named = true
		}
	}
	return g
}

// address judges what a name was resolved to.
func (g *guard) address(ip netip.Addr) error {
	if g.free {
		return nil
	}
	ip = plainIP(ip)
	for _, n := range g.networks {
		if n.Contains(ip) {
			return nil
		}
	}
	if !g.named || special(ip) {
		return errors.New("the address is not one that a canary may name" + howToAllow)
	}
	return nil
}

// plainIP is the IPv4 address inside an IPv6 one that stands for it.
func plainIP(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	if nat64.Contains(ip) {
		b := ip.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip
}

var (
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
	// metadata services that aren't link-local.
	metadata = map[netip.Addr]bool{
		netip.MustParseAddr("fd00:ec2::254"):   true,
		netip.MustParseAddr("168.63.129.16"):   true,
		netip.MustParseAddr("100.100.100.200"): true,
	}
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
)

// special addresses are the manager's own machine, its link, and what answers with credentials to
// whoever asks from there.
func special(ip netip.Addr) bool {
	return ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() ||
		ip.IsInterfaceLocalMulticast() || thisNetwork.Contains(ip) || metadata[ip]
}

// transport carries the requests of one sample. It isn't shared, so that a connection that was made
// under one rule is never used under another.
func (g *guard) transport() *http.Transport {
	checked := &net.Dialer{Timeout: 5 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("address %s can't be read", address)
		}
		return g.address(at.Addr())
	}}
	open := &net.Dialer{Timeout: 5 * time.Second}
	return &http.Transport{
		Proxy: g.proxy,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if g.viaProxy(address) {
				return open.DialContext(ctx, network, address)
			}
			return checked.DialContext(ctx, network, address)
		},
		TLSHandshakeTimeout:    5 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      true,
	}
}

// proxy is the one of the manager's environment. A proxy resolves names itself, so behind one an address
// can be judged only by how it is written.
func (g *guard) proxy(r *http.Request) (*url.URL, error) {
	via, err := http.ProxyFromEnvironment(r)
	if via == nil || err != nil {
		return via, err
	}
	if ip, err := netip.ParseAddr(r.URL.Hostname()); err == nil {
		if err := g.address(ip); err != nil {
			return nil, err
		}
	} else if !g.free && !g.named {
		return nil, errors.New("the address is not one that a canary may name" + howToAllow)
	}
	port := via.Port()
	if port == "" {
		port = map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[via.Scheme]
	}
	if port == "" {
		port = "80"
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.proxies[net.JoinHostPort(via.Hostname(), port)] = true
	return via, nil
}

func (g *guard) viaProxy(address string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.proxies[address]
}
