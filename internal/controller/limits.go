package controller

import "context"

const (
	// perService bounds the writes in flight for one service. It is less than half
	// of inAll, so a huge service can't take the writes of all others either.
	perService = 64
	// inAll bounds the writes in flight in all.
	inAll = 256
	// forStatus of them only status writes may use: what authorizes work goes first.
	forStatus = 32
)

// limits bounds the writes in flight of the process.
type limits struct {
	any, status chan struct{}
}

func newLimits() *limits {
	return &limits{any: make(chan struct{}, inAll-forStatus), status: make(chan struct{}, forStatus)}
}

// acquire takes a slot; release gives it back.
func (l *limits) acquire(ctx context.Context, isStatus bool) (release func(), err error) {
	var reserved chan struct{} // nil blocks for ever in a select
	if isStatus {
		reserved = l.status
	}
	select {
	case l.any <- struct{}{}:
		return func() { <-l.any }, nil
	case reserved <- struct{}{}:
		return func() { <-l.status }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
