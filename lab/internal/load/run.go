package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"ome.io/ome/lab/internal/addr"
	"ome.io/ome/lab/internal/stub"
	"ome.io/ome/lab/internal/stub/endpoints"
)

// Config says what to send where.
type Config struct {
	Client kubernetes.Interface
	// Service names an InferenceService, or any Service.
	Service types.NamespacedName
	// Rate is requests per second.
	Rate float64
	// Duration is how long to send; with 0, until the context ends.
	Duration time.Duration
	// Lag is the longest a change of endpoints takes to reach a client; negative for none, and 2 s
	// when zero.
	Lag time.Duration
	// Clients is how many client nodes send, each with its own view; 4 when zero.
	Clients int
	// Timeout of one request; 10 s when zero.
	Timeout time.Duration
	// Wait is how long to wait for the first endpoint before sending; 60 s when zero.
	Wait time.Duration
	// OnSecond, when set, is called with the counts so far about once a second.
	OnSecond func(Counts)
	// OnFailure, when set, is called with each failed request, by many goroutines.
	OnFailure func(ErrorSample)
	// OnStart, when set, is called just before the first request.
	OnStart func()
}

// path and body of every request.
var body = []byte(`{"model":"lab","prompt":"Say nothing."}`)

// sampleErrors is how many different errors a result shows.
const sampleErrors = 8

func (c Config) withDefaults() (Config, error) {
	if c.Service.Name == "" || c.Service.Namespace == "" {
		return c, fmt.Errorf("load: service %q must be NAMESPACE/NAME", c.Service)
	}
	if !(c.Rate > 0) || c.Rate > 100_000 {
		return c, fmt.Errorf("load: rate %v must be over 0 and at most 100000 requests a second", c.Rate)
	}
	if c.Duration < 0 {
		return c, fmt.Errorf("load: duration %s is negative", c.Duration)
	}
	if c.Lag == 0 {
		c.Lag = 2 * time.Second
	}
	c.Lag = max(c.Lag, 0)
	if c.Clients <= 0 {
		c.Clients = 4
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Wait == 0 {
		c.Wait = time.Minute
	}
	return c, nil
}

// Run sends until the duration is over or ctx ends, waits for the answers still due, and returns
// the result. A ctx that ends while requests flow is no error.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	watchCtx, stopWatch := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatch()
	front, err := Front(ctx, cfg.Client, cfg.Service)
	if err != nil {
		return nil, err
	}
	watcher := endpoints.New(nil)
	if err := watcher.Start(watchCtx, cfg.Client, front.Namespace); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	var clients []*client
	for range cfg.Clients {
		c := &client{
			view: watcher.View(front, cfg.Lag, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))),
			http: &http.Client{
				Timeout: cfg.Timeout,
				Transport: &http.Transport{
					DialContext: addr.Dial, MaxIdleConnsPerHost: 256, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
				},
			},
		}
		defer c.view.Close()
		defer c.http.CloseIdleConnections()
		clients = append(clients, c)
	}
	if err := awaitEndpoints(ctx, cfg, front, clients); err != nil {
		return nil, err
	}
	if cfg.OnStart != nil {
		cfg.OnStart()
	}
	return flow(ctx, cfg, front, func(i int) outcome { return clients[i%len(clients)].send(watchCtx) }), nil
}

// Front finds the Service clients use: the name itself, else its router, else its engine.
func Front(ctx context.Context, client kubernetes.Interface, service types.NamespacedName) (types.NamespacedName, error) {
	tried := []string{service.Name, service.Name + "-router", service.Name + "-engine"}
	for _, name := range tried {
		_, err := client.CoreV1().Services(service.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			return types.NamespacedName{Namespace: service.Namespace, Name: name}, nil
		}
		if !apierrors.IsNotFound(err) {
			return types.NamespacedName{}, fmt.Errorf("load: get Service %s/%s: %w", service.Namespace, name, err)
		}
	}
	return types.NamespacedName{}, fmt.Errorf("load: namespace %q has none of the Services %q; is %q the name of an InferenceService that is up?",
		service.Namespace, tried, service.Name)
}

func awaitEndpoints(ctx context.Context, cfg Config, front types.NamespacedName, clients []*client) error {
	timeout := time.NewTimer(cfg.Wait)
	defer timeout.Stop()
	for _, c := range clients {
		for len(c.view.Routable()) == 0 {
			select {
			case <-c.view.Changed():
			case <-timeout.C:
				return fmt.Errorf("load: Service %s has had no ready endpoint for %s; look at its pods with: kubectl -n %s get pods", front, cfg.Wait, front.Namespace)
			case <-ctx.Done():
				return fmt.Errorf("load: stopped before Service %s had a ready endpoint", front)
			}
		}
	}
	return nil
}

// flow keeps the schedule: request i leaves at start + i/rate.
func flow(ctx context.Context, cfg Config, front types.NamespacedName, send func(i int) outcome) *Result {
	var (
		collector = newCollector()
		inFlight  sync.WaitGroup
		start     = time.Now()
		timer     = time.NewTimer(0)
		second    = start.Add(time.Second)
	)
	defer timer.Stop()
	<-timer.C
loop:
	for i := 0; ; i++ {
		at := scheduled(start, i, cfg.Rate)
		if cfg.Duration > 0 && at.Sub(start) >= cfg.Duration {
			break
		}
		if wait := time.Until(at); wait > 0 {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
				break loop
			case <-timer.C:
			}
		} else if ctx.Err() != nil {
			break
		}
		inFlight.Go(func() {
			o := send(i)
			o.latency = time.Since(at)
			collector.add(at, o)
			if !o.ok && cfg.OnFailure != nil {
				cfg.OnFailure(o.sample(at))
			}
		})
		if now := time.Now(); cfg.OnSecond != nil && !now.Before(second) {
			cfg.OnSecond(collector.counts())
			second = now.Add(time.Second)
		}
	}
	inFlight.Wait()
	return collector.result(cfg, front)
}

func scheduled(start time.Time, i int, rate float64) time.Time {
	return start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
}

// client is one node's worth of clients.
type client struct {
	view *endpoints.View
	http *http.Client
}

// outcome is what became of one request.
type outcome struct {
	latency                 time.Duration
	ok                      bool
	failure                 string // a class, when not ok
	detail                  string
	router, engine, decoder string
}

// failures this side can see, beside those a stub names in its answer.
const (
	failureConnection = "connection"
	failureTimeout    = "timeout"
	failureStatus     = "status"
)

func (c *client) send(ctx context.Context) outcome {
	list := c.view.Routable()
	if len(list) == 0 {
		return outcome{failure: stub.FailureNoEndpoint, detail: "no endpoint of the front Service is ready"}
	}
	to := list[rand.IntN(len(list))]
	where := func(what any) string { return fmt.Sprintf("%s: %v", to.Pod.Name, what) }
	res, err := stub.Post(ctx, c.http, to, stub.PathCompletions, body)
	if err == nil {
		defer res.Body.Close()
	}
	var answer []byte
	if err == nil {
		answer, err = io.ReadAll(res.Body)
	}
	if err != nil {
		o := outcome{failure: failureConnection, detail: where(err)}
		var timeout interface{ Timeout() bool }
		if errors.As(err, &timeout) && timeout.Timeout() {
			o.failure = failureTimeout
		}
		return o
	}
	o := outcome{
		router:  res.Header.Get(stub.HeaderRouter),
		engine:  res.Header.Get(stub.HeaderEngine),
		decoder: res.Header.Get(stub.HeaderDecoder),
	}
	if res.StatusCode == http.StatusOK {
		o.ok = true
		return o
	}
	o.failure = res.Header.Get(stub.HeaderFailure)
	if o.failure == "" {
		o.failure = failureStatus
	}
	if len(answer) > 300 {
		answer = answer[:300]
	}
	o.detail = where(fmt.Sprintf("%d %s", res.StatusCode, answer))
	return o
}
