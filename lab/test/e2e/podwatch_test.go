package e2e

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// podWatch sees every state that the pods of a namespace go through, in the order of one watch.
type podWatch struct {
	mu   sync.Mutex
	pods map[string]*corev1.Pod
	on   bool // what the first list is taken in through are no states that ever were
	see  func([]*corev1.Pod)
}

// watchPods calls see with all pods after each change, one call at a time, until the test ends.
func (c *chat) watchPods(ctx context.Context, t *testing.T, see func([]*corev1.Pod)) {
	t.Helper()
	c.lab.watchPods(ctx, t, c.ns, see)
}

func (l *lab) watchPods(ctx context.Context, t *testing.T, ns string, see func([]*corev1.Pod)) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	w := &podWatch{pods: map[string]*corev1.Pod{}, see: see}
	factory := informers.NewSharedInformerFactoryWithOptions(l.kube, 0, informers.WithNamespace(ns))
	put := func(o any) {
		p := o.(*corev1.Pod)
		w.change(func() { w.pods[p.Name] = p })
	}
	handler, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: put, UpdateFunc: func(_, o any) { put(o) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			w.change(func() { delete(w.pods, o.(*corev1.Pod).Name) })
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		t.Fatal("the watch of the pods did not start")
	}
	w.change(func() { w.on = true })
}

func (w *podWatch) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	if !w.on {
		return
	}
	var list []*corev1.Pod
	for _, p := range w.pods {
		list = append(list, p)
	}
	w.see(list)
}

// extremes are the fewest that served and the most there were.
type extremes struct {
	mu           sync.Mutex
	served, pods int
	any          bool
}

func (e *extremes) see(pods []*corev1.Pod) {
	serving := 0
	for _, p := range pods {
		if p.DeletionTimestamp == nil && podReady(p) {
			serving++
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.any {
		e.served, e.any = serving, true
	}
	e.served, e.pods = min(e.served, serving), max(e.pods, len(pods))
}

func (e *extremes) get() (fewestServed, mostPods int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.served, e.pods
}
