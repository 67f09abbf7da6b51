package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// podState is what counts of one pod.
type podState struct {
	image          string
	ready, leaving bool
}

// observer follows the pods of one contestant, in the same way for all, and notes when a roll has got where.
type observer struct {
	// onPod, when set, is told of each pod. The gate setter listens here.
	onPod func(*corev1.Pod)

	mu      sync.Mutex
	pods    map[types.UID]podState
	target  string
	want    int
	watched rollTimes
	changed chan struct{} // closed and replaced at each step forward
}

// rollTimes is what was seen of one roll.
type rollTimes struct {
	began time.Time
	// serving: every desired pod is a ready new one and no old one is left in place.
	serving time.Time
	// complete: the object's status says that the roll is over.
	complete time.Time
	// gone: the last old pod has left the API.
	gone time.Time
	// leastReady and mostPods bound what was in place, leaving pods aside.
	leastReady, mostPods int
}

func newObserver() *observer {
	return &observer{pods: map[types.UID]podState{}, changed: make(chan struct{})}
}

// start follows the pods of a namespace until ctx ends, and returns when it knows all there are.
func (o *observer) start(ctx context.Context, client kubernetes.Interface, namespace string) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTransform(func(obj any) (any, error) {
			if p, ok := obj.(*corev1.Pod); ok {
				p.ManagedFields = nil
			}
			return obj, nil
		}))
	handler, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { o.see(obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { o.see(obj.(*corev1.Pod)) },
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			o.remove(obj.(*corev1.Pod).UID)
		},
	})
	if err != nil {
		return fmt.Errorf("watch the pods of %s: %w", namespace, err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		return fmt.Errorf("watch the pods of %s: %w", namespace, context.Cause(ctx))
	}
	return nil
}

func (o *observer) see(p *corev1.Pod) {
	if o.onPod != nil {
		o.onPod(p)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pods[p.UID] = podState{image: p.Spec.Containers[0].Image, ready: isTrue(p, corev1.PodReady) && runs(p), leaving: p.DeletionTimestamp != nil}
	o.judge()
}

func (o *observer) remove(uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.pods, uid)
	o.judge()
}

func isTrue(p *corev1.Pod, kind corev1.PodConditionType) bool {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// runs is false for a pod that still runs another image than the one it should have
// by now, which only a pod that is updated in place can.
func runs(p *corev1.Pod) bool {
	for i := range p.Status.ContainerStatuses {
		if s := &p.Status.ContainerStatuses[i]; s.Name == p.Spec.Containers[0].Name {
			return s.Image == p.Spec.Containers[0].Image
		}
	}
	return true
}

// expect begins a roll to an image.
func (o *observer) expect(image string, want int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.target, o.want = image, want
	o.watched = rollTimes{began: time.Now(), leastReady: want}
	o.judge()
}

// completed notes what the object's status says.
func (o *observer) completed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.watched.complete.IsZero() {
		o.watched.complete = time.Now()
		o.tell()
	}
}

func (o *observer) tell() {
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *observer) judge() {
	if o.want == 0 {
		return
	}
	var ready, inPlace, fresh, oldInPlace, old int
	for _, p := range o.pods {
		if p.image != o.target {
			old++
		}
		if p.leaving {
			continue
		}
		inPlace++
		if p.ready {
			ready++
		}
		switch {
		case p.image != o.target:
			oldInPlace++
		case p.ready:
			fresh++
		}
	}
	t := &o.watched
	t.leastReady, t.mostPods = min(t.leastReady, ready), max(t.mostPods, inPlace)
	if t.serving.IsZero() && fresh >= o.want && oldInPlace == 0 {
		t.serving = time.Now()
		o.tell()
	}
	if t.gone.IsZero() && fresh >= o.want && old == 0 {
		t.gone = time.Now()
		o.tell()
	}
}

// wait returns once the roll has got as far as done says.
func (o *observer) wait(ctx context.Context, limit time.Duration, done func(rollTimes) bool) (rollTimes, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		o.mu.Lock()
		now, changed := o.watched, o.changed
		o.mu.Unlock()
		if done(now) {
			return now, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return now, fmt.Errorf("not within %s: %s", limit, o.describe())
		case <-ctx.Done():
			return now, context.Cause(ctx)
		}
	}
}

func (o *observer) describe() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var fresh, ready, leaving int
	for _, p := range o.pods {
		if p.image == o.target {
			fresh++
			if p.ready {
				ready++
			}
		}
		if p.leaving {
			leaving++
		}
	}
	return fmt.Sprintf("%d pods, %d of them with image %s, %d of those ready (want %d), %d leaving; its status says complete: %t",
		len(o.pods), fresh, o.target, ready, o.want, leaving, !o.watched.complete.IsZero())
}

// setter sets the serving gate of each pod whose containers are ready, as a small controller beside a Deployment would.
type setter struct {
	client kubernetes.Interface
	gate   corev1.PodConditionType
	todo   chan *corev1.Pod

	mu   sync.Mutex
	done map[types.UID]bool
	errs int
}

// setters is how many gates are set at one time, as many as the manager has writes in flight for one service.
const setters = 64

func newSetter(client kubernetes.Interface, gate corev1.PodConditionType) *setter {
	return &setter{client: client, gate: gate, todo: make(chan *corev1.Pod, 1<<14), done: map[types.UID]bool{}}
}

func (s *setter) see(p *corev1.Pod) {
	if p.DeletionTimestamp != nil || !isTrue(p, corev1.ContainersReady) || isTrue(p, s.gate) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done[p.UID] {
		s.done[p.UID] = true
		s.todo <- p
	}
}

func (s *setter) run(ctx context.Context) {
	for range setters {
		go func() {
			for {
				select {
				case p := <-s.todo:
					s.set(ctx, p)
				case <-ctx.Done():
					return
				}
			}
		}()
	}
}

func (s *setter) set(ctx context.Context, p *corev1.Pod) {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"status":{"conditions":[{"type":%q,"status":"True","reason":"InRotation","lastTransitionTime":%q}]}}`,
		p.UID, s.gate, time.Now().UTC().Format(time.RFC3339))
	_, err := s.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs++
	delete(s.done, p.UID) // the pod's next event tries again
}
