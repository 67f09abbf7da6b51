package controller_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
)

// startKubelet plays kubelet and EndpointSlice controller: an API server alone
// runs no pod and routes to none.
func startKubelet(t *testing.T, namespace string) {
	t.Helper()
	k := kubelet{client: newClient(t), namespace: namespace}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if err := k.step(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
				t.Errorf("kubelet: %v", err)
				return
			}
			time.Sleep(20 * time.Millisecond) // the nodes of this test step on a real clock
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
}

type kubelet struct {
	client    client.Client
	namespace string
}

func (k *kubelet) step(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := k.client.List(ctx, pods, client.InNamespace(k.namespace)); err != nil {
		return err
	}
	for i := range pods.Items {
		if err := k.pod(ctx, &pods.Items[i]); err != nil {
			return err
		}
	}
	services := &corev1.ServiceList{}
	if err := k.client.List(ctx, services, client.InNamespace(k.namespace)); err != nil {
		return err
	}
	for i := range services.Items {
		if err := k.slice(ctx, &services.Items[i], pods.Items); err != nil {
			return err
		}
	}
	return nil
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return corev1.ConditionFalse
}

// containerID is that of the container which runs an image: another image is run by
// another one.
func containerID(pod *corev1.Pod, c corev1.Container) string {
	return "test://" + string(pod.UID) + "/" + c.Name + "/" + c.Image
}

func runsItsImages(pod *corev1.Pod) bool {
	return slices.EqualFunc(pod.Spec.Containers, pod.Status.ContainerStatuses, func(c corev1.Container, s corev1.ContainerStatus) bool {
		return s.ContainerID == containerID(pod, c)
	})
}

// pod makes containers ready at once, and the pod ready when its gate says so.
func (k *kubelet) pod(ctx context.Context, pod *corev1.Pod) error {
	ready := condition(pod, v1beta1.ServingReadinessGate)
	if pod.DeletionTimestamp != nil ||
		pod.Status.Phase == corev1.PodRunning && condition(pod, corev1.PodReady) == ready && runsItsImages(pod) {
		return nil
	}
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP = "198.18.0.1"
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: containerID(pod, c), Ready: true, Started: ptr.To(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		})
	}
	set := func(kind corev1.PodConditionType, status corev1.ConditionStatus) {
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; c.Type == kind {
				if c.Status != status {
					c.Status, c.LastTransitionTime = status, metav1.Now()
				}
				return
			}
		}
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.Now()})
	}
	set(corev1.PodScheduled, corev1.ConditionTrue)
	set(corev1.PodInitialized, corev1.ConditionTrue)
	set(corev1.ContainersReady, corev1.ConditionTrue)
	set(corev1.PodReady, ready)
	return k.client.Status().Patch(ctx, pod, client.StrategicMergeFrom(before))
}

// slice keeps one EndpointSlice for each Service with a selector.
func (k *kubelet) slice(ctx context.Context, svc *corev1.Service, pods []corev1.Pod) error {
	if len(svc.Spec.Selector) == 0 {
		return nil
	}
	want := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: svc.Namespace, Name: svc.Name, Labels: map[string]string{}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	maps.Copy(want.Labels, svc.Labels)
	want.Labels[discoveryv1.LabelServiceName] = svc.Name
	for i := range pods {
		pod := &pods[i]
		if !labels.SelectorFromSet(svc.Spec.Selector).Matches(labels.Set(pod.Labels)) || pod.Status.PodIP == "" {
			continue
		}
		ready := svc.Spec.PublishNotReadyAddresses || condition(pod, corev1.PodReady) == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		want.Endpoints = append(want.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{pod.Status.PodIP}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(ready)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		})
	}
	stored := &discoveryv1.EndpointSlice{}
	err := k.client.Get(ctx, client.ObjectKeyFromObject(want), stored)
	if apierrors.IsNotFound(err) {
		return k.client.Create(ctx, want)
	}
	if err != nil {
		return err
	}
	if len(stored.Endpoints) == len(want.Endpoints) {
		same := true
		for i := range want.Endpoints {
			same = same && stored.Endpoints[i].TargetRef.UID == want.Endpoints[i].TargetRef.UID &&
				*stored.Endpoints[i].Conditions.Ready == *want.Endpoints[i].Conditions.Ready
		}
		if same {
			return nil
		}
	}
	want.ResourceVersion = stored.ResourceVersion
	return k.client.Update(ctx, want)
}
