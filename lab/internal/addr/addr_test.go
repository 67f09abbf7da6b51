package addr

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
)

func TestTranslate(t *testing.T) {
	for in, want := range map[string]string{
		"198.18.0.1:8080":     "127.18.0.1:8080",
		"198.19.255.254:9000": "127.19.255.254:9000",
		"198.20.0.1:8080":     "198.20.0.1:8080",
		"198.17.0.1:8080":     "198.17.0.1:8080",
		"127.0.0.1:6443":      "127.0.0.1:6443",
		"localhost:80":        "localhost:80",
		"[::1]:80":            "[::1]:80",
		"not-an-address":      "not-an-address",
	} {
		if got := Translate(in); got != want {
			t.Errorf("Translate(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMappingIsABijection(t *testing.T) {
	for n := range Total {
		ip := At(n)
		if got, ok := Index(ip); !ok || got != n {
			t.Fatalf("Index(At(%d)) = %d, %v", n, got, ok)
		}
		listen, ok := Listen(ip)
		if !ok || !listen.IsLoopback() {
			t.Fatalf("Listen(%s) = %s, %v, want a loopback address", ip, listen, ok)
		}
		if back, ok := Recorded(listen); !ok || back != ip {
			t.Fatalf("Recorded(Listen(%s)) = %s, %v", ip, back, ok)
		}
	}
	if _, ok := Recorded(netip.MustParseAddr("127.0.0.1")); ok {
		t.Error("127.0.0.1 is nobody's pod address")
	}
}

func TestBlocksAreDisjointAndExclusive(t *testing.T) {
	a, err := Claim(-1)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := Claim(-1)
	if err != nil {
		t.Fatal(err)
	}
	if a.Number() == b.Number() {
		t.Fatalf("both labs got block %d", a.Number())
	}
	if _, err := Claim(a.Number()); err == nil {
		t.Errorf("block %d was claimed twice", a.Number())
	}
	number := b.Number()
	b.Close()
	c, err := Claim(number)
	if err != nil {
		t.Errorf("a block given up should be free again: %v", err)
	} else {
		c.Close()
	}
	if _, err := Claim(Blocks); err == nil {
		t.Error("a block past the last was granted")
	}
}

func TestBlockHandsOutEachAddressOnce(t *testing.T) {
	b, err := Claim(-1)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	first, _ := b.Next()
	if b.Reserve(first) {
		t.Errorf("%s was reserved while in use", first)
	}
	second, _ := Index(first)
	if !b.Reserve(At(second + 1)) {
		t.Errorf("%s should be free", At(second+1))
	}
	seen := map[netip.Addr]bool{first: true, At(second + 1): true}
	for {
		ip, err := b.Next()
		if err != nil {
			if !errors.Is(err, ErrExhausted) {
				t.Fatal(err)
			}
			break
		}
		if seen[ip] {
			t.Fatalf("%s handed out twice", ip)
		}
		seen[ip] = true
	}
	if want := BlockSize - 2; len(seen) != want {
		t.Errorf("handed out %d addresses, want %d", len(seen), want)
	}
	b.Release(first)
	if got, err := b.Next(); err != nil || got != first {
		t.Errorf("Next after Release(%s) = %s, %v", first, got, err)
	}
}

func TestDialReachesAListener(t *testing.T) {
	b, err := Claim(-1)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ip, err := b.Next()
	if err != nil {
		t.Fatal(err)
	}
	listen, _ := Listen(ip)
	l, err := net.Listen("tcp4", netip.AddrPortFrom(listen, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c, err := Dial(context.Background(), "tcp", net.JoinHostPort(ip.String(), port))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
