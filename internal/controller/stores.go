package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/internal/settings"
)

// reader is what a pass needs of one kind's cache.
type reader interface {
	// Get returns the object under namespace/name, or just name.
	Get(key string) (any, bool)
	// Index returns the objects under a value of an index.
	Index(name, value string) []any
	// List returns all objects.
	List() []any
	// Version is the resourceVersion the store is at. The reflector's own can run
	// ahead of what the store holds.
	Version() string
}

// stores are the caches of all kinds. Objects in them are shared: nobody may
// write to them.
type stores map[kind]reader

// informerReader reads an informer's own store, without copies and without
// going through reflection.
type informerReader struct {
	informer toolscache.SharedIndexInformer
}

func (r informerReader) Get(key string) (any, bool) {
	obj, ok, err := r.informer.GetIndexer().GetByKey(key)
	return obj, ok && err == nil
}

func (r informerReader) Index(name, value string) []any {
	objs, err := r.informer.GetIndexer().ByIndex(name, value)
	if err != nil {
		panic(err) // the index was never added: a mistake in indexersOf
	}
	return objs
}

func (r informerReader) List() []any     { return r.informer.GetIndexer().List() }
func (r informerReader) Version() string { return r.informer.GetStore().LastStoreSyncResourceVersion() }

// watched is a set of caches that can be started once.
type watched struct {
	cache     cache.Cache
	kinds     []kind
	informers map[kind]toolscache.SharedIndexInformer
}

// newWatched prepares the caches. Nothing is read yet but the API server's
// list of resources.
func newWatched(ctx context.Context, cfg *rest.Config, httpClient *http.Client, scheme *runtime.Scheme, mapper meta.RESTMapper, namespace string, kinds []kind) (*watched, error) {
	selected := cache.ByObject{Label: labelled()}
	byObject := map[client.Object]cache.ByObject{
		newObject(kindPod):         {Label: selected.Label, Transform: trimPod},
		newObject(kindRevision):    selected,
		newObject(kindCoreService): selected,
		newObject(kindSlice):       selected,
		newObject(kindScaler):      {Label: selected.Label, Transform: trimScaler},
		newObject(kindConfigMap): {Field: fields.AndSelectors(
			fields.OneTermEqualSelector("metadata.name", settings.ConfigMapName),
			fields.OneTermEqualSelector("metadata.namespace", namespace),
		)},
	}
	if slices.Contains(kinds, kindScaledObject) {
		byObject[newObject(kindScaledObject)] = selected
	}
	c, err := cache.New(cfg, cache.Options{
		HTTPClient:                   httpClient,
		Scheme:                       scheme,
		Mapper:                       mapper,
		DefaultTransform:             cache.TransformStripManagedFields(),
		DefaultUnsafeDisableDeepCopy: ptr.To(true),
		ByObject:                     byObject,
		// Nothing may depend on a resync, so there is none.
		NewInformer: func(lw toolscache.ListerWatcher, obj runtime.Object, _ time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			return toolscache.NewSharedIndexInformer(lw, obj, 0, indexers)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("caches: %w", err)
	}
	w := &watched{cache: c, kinds: kinds, informers: map[kind]toolscache.SharedIndexInformer{}}
	for _, k := range kinds {
		i, err := c.GetInformer(ctx, newObject(k), cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("cache of %s: %w", k, err)
		}
		informer, ok := i.(toolscache.SharedIndexInformer)
		if !ok {
			return nil, fmt.Errorf("cache of %s: %T can't tell the version it is at", k, i)
		}
		if indexers := indexersOf(k); indexers != nil {
			if err := informer.AddIndexers(indexers); err != nil {
				return nil, fmt.Errorf("cache of %s: %w", k, err)
			}
		}
		w.informers[k] = informer
	}
	return w, nil
}

func (w *watched) stores() stores {
	s := stores{}
	for k, i := range w.informers {
		s[k] = informerReader{i}
	}
	return s
}

// trimPod drops what no decision reads. A pod's spec and volumes are most of its
// size, and they never change: the revision says what a pod runs.
func trimPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	pod.ManagedFields = nil
	spec := corev1.PodSpec{
		NodeName:                      pod.Spec.NodeName,
		ReadinessGates:                pod.Spec.ReadinessGates,
		SchedulingGates:               pod.Spec.SchedulingGates,
		TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds,
	}
	for _, c := range pod.Spec.Containers {
		spec.Containers = append(spec.Containers, corev1.Container{Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy})
	}
	for _, c := range pod.Spec.InitContainers {
		spec.InitContainers = append(spec.InitContainers, corev1.Container{Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy})
	}
	pod.Spec = spec
	return pod, nil
}

func listOf[T any](objs []any) []T {
	out := make([]T, 0, len(objs))
	for _, o := range objs {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

func getAs[T metav1.Object](r reader, key string) (T, bool) {
	var none T
	obj, ok := r.Get(key)
	if !ok {
		return none, false
	}
	t, ok := obj.(T)
	return t, ok
}
