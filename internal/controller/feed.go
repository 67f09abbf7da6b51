package controller

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"ome.io/ome/api/v1beta1"
)

type queue = workqueue.TypedRateLimitingInterface[types.NamespacedName]

// feed turns the events of every kind into keys of services.
func feed(w *watched, s stores, q queue, settingsChanged func(*corev1.ConfigMap)) error {
	for _, k := range w.kinds {
		var handler toolscache.ResourceEventHandler
		if k == kindConfigMap {
			handler = settingsEvents(s, q, settingsChanged)
		} else {
			handler = keyEvents(s, k, q)
		}
		if _, err := w.informers[k].AddEventHandler(handler); err != nil {
			return err
		}
	}
	return nil
}

// keyEvents adds the keys that an object concerns, before and after a change.
func keyEvents(s stores, k kind, q queue) toolscache.ResourceEventHandler {
	add := func(obj any) {
		for _, key := range keysOf(s, k, obj) {
			q.Add(key)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: add,
		UpdateFunc: func(before, after any) {
			if k == kindScaler && sameScaler(before, after) || k == kindPolicy && samePolicy(before, after) {
				return
			}
			// The queue holds a key once, however often it is added.
			add(before)
			add(after)
		},
		DeleteFunc: func(obj any) {
			if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			add(obj)
		},
	}
}

// keysOf lists the services that an object concerns.
func keysOf(s stores, k kind, obj any) []types.NamespacedName {
	o, ok := obj.(metav1.Object)
	if !ok {
		return nil
	}
	switch k {
	case kindService:
		return []types.NamespacedName{keyOf(o)}
	case kindReplica:
		if r, ok := obj.(*v1beta1.InferenceReplica); ok && r.Spec.ParentRef != nil {
			return []types.NamespacedName{{Namespace: r.Namespace, Name: r.Spec.ParentRef.Name}}
		}
		return nil
	case kindRuntime:
		return users(s, byRuntime, localRef(o.GetNamespace(), o.GetName()))
	case kindClusterRuntime:
		return users(s, byRuntime, clusterRef(o.GetName()))
	case kindPolicy:
		return users(s, byPolicy, localRef(o.GetNamespace(), o.GetName()))
	case kindModel:
		return users(s, byModel, localRef(o.GetNamespace(), o.GetName()))
	case kindClusterModel:
		return users(s, byModel, clusterRef(o.GetName()))
	}
	if name := o.GetLabels()[v1beta1.InferenceServiceLabel]; name != "" {
		return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: name}}
	}
	return nil
}

func users(s stores, index, value string) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, isvc := range listOf[*v1beta1.InferenceService](s[kindService].Index(index, value)) {
		keys = append(keys, keyOf(isvc))
	}
	return keys
}

// settingsEvents wakes every service when a change of the ConfigMap means something.
func settingsEvents(s stores, q queue, changed func(*corev1.ConfigMap)) toolscache.ResourceEventHandler {
	wakeAll := func() {
		for _, isvc := range listOf[*v1beta1.InferenceService](s[kindService].List()) {
			q.Add(keyOf(isvc))
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if cm, ok := obj.(*corev1.ConfigMap); ok {
				changed(cm)
			}
			if !initial {
				wakeAll()
			}
		},
		UpdateFunc: func(before, after any) {
			old, ok1 := before.(*corev1.ConfigMap)
			cm, ok2 := after.(*corev1.ConfigMap)
			if !ok1 || !ok2 || old.ResourceVersion == cm.ResourceVersion {
				return
			}
			changed(cm)
			if !sameSettings(old, cm) {
				wakeAll()
			}
		},
		DeleteFunc: func(any) { wakeAll() },
	}
}
