package addr

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
)

const (
	// BlockSize is how many addresses one lab holds; the first is its claim and goes to no pod.
	BlockSize = 8192
	// Blocks is how many labs fit side by side on one machine.
	Blocks = Total / BlockSize

	// claimPort is bound on a block's first address for as long as the block is held. The kernel
	// frees it when the process dies, however it dies, so no stale claim can be left behind.
	claimPort = 9
)

// ErrExhausted is returned when a block has no free address.
var ErrExhausted = errors.New("no free pod address")

// Block is one lab's share of the pod addresses.
type Block struct {
	first int
	claim net.Listener

	mu   sync.Mutex
	used map[int]bool
	// free is taken from the front and refilled at the back, so an address rests as long as
	// possible before another pod gets it and a stale client meets nobody, not a stranger.
	free []int
}

// Claim takes block n, or with n < 0 the first one no other lab on this machine holds.
func Claim(n int) (*Block, error) {
	if n >= Blocks {
		return nil, fmt.Errorf("address block %d: there are only %d blocks, numbered from 0", n, Blocks)
	}
	if n >= 0 {
		return claim(n)
	}
	var last error
	for i := range Blocks {
		b, err := claim(i)
		if err == nil {
			return b, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, err
		}
		last = err
	}
	return nil, fmt.Errorf("all %d address blocks are held by other labs; stop one of them: %w", Blocks, last)
}

func claim(n int) (*Block, error) {
	first := n * BlockSize
	listen, _ := Listen(At(first))
	l, err := net.Listen("tcp4", netip.AddrPortFrom(listen, claimPort).String())
	if errors.Is(err, syscall.EACCES) {
		// Ports below 1024 may be closed to ordinary users; any fixed port serves as the claim.
		l, err = net.Listen("tcp4", netip.AddrPortFrom(listen, claimPort+10000).String())
	}
	if err != nil {
		return nil, fmt.Errorf("claim address block %d at %s: %w", n, listen, err)
	}
	b := &Block{first: first, claim: l, used: map[int]bool{}, free: make([]int, 0, BlockSize-2)}
	for i := first + 1; i < first+BlockSize-1; i++ {
		b.free = append(b.free, i)
	}
	return b, nil
}

// Number is the block's number.
func (b *Block) Number() int { return b.first / BlockSize }

// Next hands out an address.
func (b *Block) Next() (netip.Addr, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.free) > 0 {
		i := b.free[0]
		b.free = b.free[1:]
		if b.used[i] {
			continue // reserved by name since it was freed
		}
		b.used[i] = true
		return At(i), nil
	}
	return netip.Addr{}, fmt.Errorf("address block %d: %w: all %d are in use", b.Number(), ErrExhausted, BlockSize-2)
}

// Reserve takes one particular address, and reports whether it was free and in the block.
func (b *Block) Reserve(ip netip.Addr) bool {
	i, ok := Index(ip)
	if !ok || i <= b.first || i >= b.first+BlockSize-1 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used[i] {
		return false
	}
	b.used[i] = true
	return true
}

// Release gives an address back. One the block doesn't hold is ignored.
func (b *Block) Release(ip netip.Addr) {
	i, ok := Index(ip)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used[i] {
		delete(b.used, i)
		b.free = append(b.free, i)
	}
}

// Close gives the block up.
func (b *Block) Close() error { return b.claim.Close() }
