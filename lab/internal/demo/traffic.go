package demo

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"ome.io/ome/lab/internal/load"
)

// traffic is the load in the background.
type traffic struct {
	client kubernetes.Interface
	cancel context.CancelFunc
	done   chan struct{}
	result *load.Result
	err    error

	mu     sync.Mutex
	counts load.Counts
}

func newTraffic(client kubernetes.Interface) *traffic { return &traffic{client: client} }

// start returns when the first request is about to leave, or can't.
func (t *traffic) start(ctx context.Context, rate float64) error {
	ctx, t.cancel = context.WithCancel(ctx)
	t.done = make(chan struct{})
	flowing := make(chan struct{})
	go func() {
		defer close(t.done)
		t.result, t.err = load.Run(ctx, load.Config{
			Client: t.client, Service: types.NamespacedName{Namespace: namespace, Name: service}, Rate: rate,
			Wait: patience, OnStart: func() { close(flowing) },
			OnSecond: func(c load.Counts) {
				t.mu.Lock()
				defer t.mu.Unlock()
				t.counts = c
			},
		})
	}()
	select {
	case <-flowing:
		return nil
	case <-t.done:
		return t.err
	}
}

// warmUp sends a few requests a second until all of a second's are answered: a new
// router learns of its engine and decoder up to 2 s after they are ready, as the
// load's clients learn of the router. None of these counts.
func (t *traffic) warmUp(ctx context.Context) error {
	for {
		res, err := load.Run(ctx, load.Config{
			Client: t.client, Service: types.NamespacedName{Namespace: namespace, Name: service},
			Rate: 10, Duration: time.Second, Wait: patience,
		})
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case res.Sent > 0 && res.OK == res.Sent:
			return nil
		}
	}
}

func (t *traffic) sofar() load.Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}

// stop ends the flow and waits for the answers that are due.
func (t *traffic) stop() (*load.Result, error) {
	if t.cancel == nil {
		return nil, nil
	}
	t.cancel()
	<-t.done
	return t.result, t.err
}

// steady waits a while as the load goes on.
func (t *traffic) steady(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.done:
		return errors.Join(errors.New("the load ended by itself"), t.err)
	case <-ctx.Done():
		return ctx.Err()
	}
}
