package node

import (
	"bytes"
	"container/heap"
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"

	"ome.io/ome/lab/internal/addr"
	"ome.io/ome/lab/internal/stub"
)

// entry is a pod the kubelet looks after.
type entry struct {
	*machine
	key  types.NamespacedName
	node string

	wake  time.Time
	index int // in timers; -1 when not there

	writing bool      // a write is in flight
	retry   time.Time // no write before this
	fails   int
	patched []byte  // the last status patch that was accepted
	repeats int     // how often in a row it was the same
	meters  []meter // of its containers
	gone    bool    // the API no longer has it
	deleted bool    // our delete was accepted
}

// kubelet runs the pods of every node. All its fields but the queue and the log index belong to
// the goroutine in loop.
type kubelet struct {
	ctx    context.Context // of the whole run; writes belong to it, not to what set them off
	client kubernetes.Interface
	log    *slog.Logger
	block  *addr.Block
	env    env
	writer *writer
	logs   *logIndex

	pods   map[types.NamespacedName]*entry
	timers timers
	down   map[string]bool // nodes that are dead

	mu     sync.Mutex
	queue  []func()
	signal chan struct{}
}

func newKubelet(ctx context.Context, client kubernetes.Interface, block *addr.Block, host *stub.Host, cfg Config) *kubelet {
	k := &kubelet{
		ctx:    ctx,
		client: client,
		log:    cfg.Log,
		block:  block,
		writer: newWriter(writers),
		logs:   newLogIndex(),
		pods:   map[types.NamespacedName]*entry{},
		down:   map[string]bool{},
		signal: make(chan struct{}, 1),
	}
	k.env = env{
		now: time.Now,
		serve: func(pod *corev1.Pod, c *corev1.Container, ip netip.Addr, b stub.Behaviour, logs *stub.Logs) (process, error) {
			return stub.Start(host, pod, c, ip, b, logs)
		},
		logs:    k.logs.set,
		backOff: cfg.BackOff, maxBackOff: cfg.MaxBackOff,
	}
	return k
}

// post runs f on the loop.
func (k *kubelet) post(f func()) {
	k.mu.Lock()
	k.queue = append(k.queue, f)
	k.mu.Unlock()
	select {
	case k.signal <- struct{}{}:
	default:
	}
}

// loop owns the pods until ctx ends, then closes their sockets.
func (k *kubelet) loop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		k.mu.Lock()
		queue := k.queue
		k.queue = nil
		k.mu.Unlock()
		for _, f := range queue {
			f()
		}
		now := time.Now()
		for len(k.timers) > 0 && !k.timers[0].wake.After(now) {
			e := heap.Pop(&k.timers).(*entry)
			k.look(e)
		}
		next := time.Hour
		if len(k.timers) > 0 {
			next = time.Until(k.timers[0].wake)
		}
		timer.Reset(next)
		select {
		case <-k.ctx.Done():
			for _, e := range k.pods {
				e.silence()
			}
			return
		case <-k.signal:
		case <-timer.C:
		}
	}
}

// see takes in a pod as the informer or a write returned it.
func (k *kubelet) see(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		return
	}
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	e := k.pods[key]
	if e != nil && e.pod.UID != pod.UID {
		k.forget(e)
		e = nil
	}
	if e == nil {
		e = k.admit(pod, key)
		if e == nil {
			return
		}
	} else {
		order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, e.pod.ResourceVersion)
		if err == nil && order <= 0 {
			if order == 0 {
				e.pod = pod // the informer's own object, instead of a second copy of it
			}
			return // no news, or older than what our own write returned
		}
		e.see(pod)
	}
	k.look(e)
}

func (k *kubelet) admit(pod *corev1.Pod, key types.NamespacedName) *entry {
	ip, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil || !k.block.Reserve(ip) {
		if ip, err = k.block.Next(); err != nil {
			k.log.Error("can't give a pod an address", "pod", key, "err", err)
			return nil
		}
	}
	e := &entry{key: key, node: pod.Spec.NodeName, index: -1}
	env := k.env
	env.post = func(f func()) {
		k.post(func() {
			f()
			k.look(e)
		})
	}
	e.machine = newMachine(&env, pod, ip)
	k.pods[key] = e
	return e
}

// remove is called when the API server no longer has a pod.
func (k *kubelet) remove(pod *corev1.Pod) {
	if e := k.pods[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]; e != nil && e.pod.UID == pod.UID {
		k.forget(e)
	}
}

func (k *kubelet) forget(e *entry) {
	e.gone = true
	e.silence()
	k.timers.set(e, time.Time{})
	k.logs.drop(e.pod)
	k.block.Release(e.ip)
	delete(k.pods, e.key)
}

// look moves a pod on and writes what changed.
func (k *kubelet) look(e *entry) {
	if e.gone || k.down[e.node] {
		return
	}
	wake := e.advance()
	if !e.writing && !e.deleted {
		if now := time.Now(); now.Before(e.retry) {
			wake = earlier(wake, e.retry)
		} else {
			k.write(e)
		}
	}
	k.timers.set(e, wake)
}

func (k *kubelet) write(e *entry) {
	uid := e.pod.UID
	pods := k.client.CoreV1().Pods(e.key.Namespace)
	if patch := e.patch(); patch != nil {
		e.writing = true
		k.writer.do(func() {
			pod, err := pods.Patch(k.ctx, e.key.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
			k.post(func() {
				k.written(e, "patch status", err)
				if err == nil {
					k.notRepeating(e, patch)
					pod.ManagedFields = nil
					k.see(pod)
					k.look(e)
				} else {
					k.look(e)
				}
			})
		})
		return
	}
	if e.done() {
		e.writing = true
		k.writer.do(func() {
			err := pods.Delete(k.ctx, e.key.Name, metav1.DeleteOptions{
				GracePeriodSeconds: new(int64),
				Preconditions:      &metav1.Preconditions{UID: &uid},
			})
			k.post(func() {
				k.written(e, "delete", err)
				e.deleted = err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err)
				k.look(e)
			})
		})
	}
}

// written notes the outcome of a write.
func (k *kubelet) written(e *entry, verb string, err error) {
	e.writing = false
	if err == nil {
		e.fails, e.retry = 0, time.Time{}
		return
	}
	e.fails++
	e.retry = time.Now().Add(backOff(100*time.Millisecond, 5*time.Second, e.fails-1))
	if k.ctx.Err() == nil && !apierrors.IsNotFound(err) && !e.gone {
		k.log.Warn("pod write failed", "verb", verb, "pod", e.key, "node", e.node, "err", err)
	}
}

// notRepeating slows a pod down whose patch is accepted and changes nothing: a bug here, or a
// status that something else keeps setting back.
func (k *kubelet) notRepeating(e *entry, patch []byte) {
	if !bytes.Equal(patch, e.patched) {
		e.patched, e.repeats = patch, 0
		return
	}
	e.repeats++
	e.retry = time.Now().Add(backOff(100*time.Millisecond, time.Minute, e.repeats))
	k.log.Warn("the same status was written again", "pod", e.key, "times", e.repeats+1, "patch", string(patch))
}

// stopNode makes a node vanish: its pods' sockets close and nothing of it is written any more.
func (k *kubelet) stopNode(name string) {
	if k.down[name] {
		return
	}
	k.down[name] = true
	for _, e := range k.pods {
		if e.node == name {
			e.silence()
			k.timers.set(e, time.Time{})
		}
	}
}

// startNode brings a node back; its pods' containers start anew.
func (k *kubelet) startNode(name string) {
	if !k.down[name] {
		return
	}
	delete(k.down, name)
	for _, e := range k.pods {
		if e.node == name {
			e.reboot()
			k.look(e)
		}
	}
}
