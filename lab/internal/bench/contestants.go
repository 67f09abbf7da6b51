package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"ome.io/ome/lab/internal/install"
)

// The contestants.
const (
	Ours  = "ours"
	Gated = "gated Deployment"
	Plain = "plain Deployment"
)

// The contestants of a run with Config.Strategies.
const (
	OursSurge    = "ours, SurgeThenDrain"
	OursRecreate = "ours, RecreatePod"
	OursInPlace  = "ours, InPlaceIfPossible"
	// GatedLike is behind as many Services as a pod of ours, of the same kinds.
	GatedLike = "gated Deployment, 5 Services"
	GatedOne  = "gated Deployment, 1 Service"
	// GatedNoSurge is GatedLike with maxSurge 0 and maxUnavailable 25%.
	GatedNoSurge = "gated Deployment, 5 Services, no surge"
)

// serviceKind is what of a Service matters to the controllers behind it.
type serviceKind struct{ headless, unready bool }

// likeOurs are the Services that select each pod of a component: the component's and
// its headless one, the service's front, and the two of the pod's revision.
var likeOurs = []serviceKind{{}, {headless: true, unready: true}, {}, {}, {headless: true}}

// Users of the lab, as the audit log names them.
const (
	managerUser  = "system:serviceaccount:" + install.Namespace + ":" + install.ServiceAccount
	kubeletsUser = install.KubeletsUser
	adminUser    = "ome-lab-admin"
	setterUser   = "ome-bench-gate-setter"
)

const (
	servingGate corev1.PodConditionType = "ome.io/serving"
	objectName                          = "bench"
)

var (
	gvIsvc        = schema.GroupVersionResource{Group: "ome.io", Version: "v1beta1", Resource: "inferenceservices"}
	gvDeployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	gvReplica     = schema.GroupVersionResource{Group: "ome.io", Version: "v1beta1", Resource: "inferencereplicas"}
	gvRuntimes    = schema.GroupVersionResource{Group: "ome.io", Version: "v1beta1", Resource: "clusterservingruntimes"}
	gvModels      = schema.GroupVersionResource{Group: "ome.io", Version: "v1beta1", Resource: "clusterbasemodels"}
)

// image is the n-th revision: it starts at once, so that what is measured is the controllers and not the servers.
func image(n int) string { return fmt.Sprintf("lab.ome.io/engine:v%d-pull0s-start0s", n) }

// contestant is one way to run and roll the same pods. Two may be ways to roll the very
// same ones.
type contestant struct {
	name, namespace string
	pods            *observer
	// managed are the pods of an InferenceService.
	managed bool
	// roll sends the one request that starts a roll.
	roll func(ctx context.Context, image string) error
	// quiet is how long nothing must be written before a roll counts as over: statuses that only count are held back.
	quiet time.Duration
}

// field is a chain of lookups in an object as JSON knows it.
func field[T any](u map[string]any, path ...string) (out T) {
	v, ok, err := unstructured.NestedFieldNoCopy(u, path...)
	if err == nil && ok {
		out, _ = v.(T)
	}
	return out
}

// ours creates the InferenceService and what it refers to.
func ours(ctx context.Context, objects dynamic.Interface, n int) (*contestant, error) {
	c := &contestant{name: Ours, namespace: "bench-ours", managed: true, pods: newObserver(), quiet: 17 * time.Second}
	for _, o := range []struct {
		at   dynamic.ResourceInterface
		text string
	}{
		{objects.Resource(gvModels), modelYAML},
		{objects.Resource(gvRuntimes), fmt.Sprintf(runtimeYAML, image(1))},
		{objects.Resource(gvIsvc).Namespace(c.namespace), fmt.Sprintf(serviceYAML, c.namespace, n, n, image(1))},
	} {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(o.text), &u.Object); err != nil {
			return nil, fmt.Errorf("the benchmark's own manifest: %w", err)
		}
		if _, err := o.at.Create(ctx, u, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("create %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	c.roll = rollOurs(objects, c.namespace, `{}`)
	return c, nil
}

// rollOurs gives the engine an image and, in the same request, the strategy to roll with.
func rollOurs(objects dynamic.Interface, namespace, strategy string) func(context.Context, string) error {
	return func(ctx context.Context, image string) error {
		patch := fmt.Appendf(nil, `{"spec":{"engine":{"runner":{"name":"ome-container","image":%q},"lifecycle":{"updateStrategy":%s}}}}`, image, strategy)
		_, err := objects.Resource(gvIsvc).Namespace(namespace).Patch(ctx, objectName, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
}

// by is the same pods rolled in another way.
func (c *contestant) by(name string, roll func(context.Context, string) error) *contestant {
	out := *c
	out.name, out.roll = name, roll
	return &out
}

// replicaSettled: all Instances run the one revision that is wanted, and the replica says so.
func replicaSettled(u map[string]any, n int) bool {
	st := field[map[string]any](u, "status")
	current := field[string](st, "currentRevision")
	if current == "" || current != field[string](st, "updateRevision") {
		return false
	}
	for _, name := range []string{"replicas", "readyReplicas", "updatedReplicas", "servingReplicas"} {
		if field[int64](st, name) != int64(n) {
			return false
		}
	}
	return field[int64](st, "observedGeneration") == field[int64](u, "metadata", "generation")
}

// follow calls see with each version of one object until ctx ends.
func follow(ctx context.Context, objects dynamic.Interface, at schema.GroupVersionResource, namespace string, see func(map[string]any)) error {
	informer := dynamicinformer.NewFilteredDynamicInformer(objects, at, namespace, 0, cache.Indexers{}, nil).Informer()
	show := func(obj any) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			see(u.Object)
		}
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: show, UpdateFunc: func(_, obj any) { show(obj) }})
	if err != nil {
		return fmt.Errorf("watch %s of %s: %w", at.Resource, namespace, err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		return fmt.Errorf("watch %s of %s: %w", at.Resource, namespace, context.Cause(ctx))
	}
	return nil
}

// deployment creates a Deployment of pods like the given one, and Services that select them.
func deployment(ctx context.Context, client kubernetes.Interface, name, namespace string, like *corev1.Pod, n int, services []serviceKind, gated bool) (*contestant, error) {
	c := &contestant{name: name, namespace: namespace, pods: newObserver(), quiet: 3 * time.Second}
	labels := map[string]string{"app": objectName}
	template := templateOf(like, gated)
	for k, v := range labels {
		template.Labels[k] = v
	}
	quarter, none, count := intstr.FromString("25%"), intstr.FromInt32(0), int32(n)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: objectName},
		Spec: appsv1.DeploymentSpec{
			Replicas: &count, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &quarter, MaxUnavailable: &none}},
		},
	}
	for i, kind := range services {
		svc := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", objectName, i)},
			Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Name: "http", Port: 8080}},
				PublishNotReadyAddresses: kind.unready},
		}
		if kind.headless {
			svc.Spec.ClusterIP = corev1.ClusterIPNone
		}
		if _, err := client.CoreV1().Services(namespace).Create(ctx, svc, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("create a Service of the %s: %w", name, err)
		}
	}
	if _, err := client.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create the %s: %w", name, err)
	}
	c.roll = rollDeployment(client, namespace, template.Spec.Containers[0].Name, "25%", "0")
	return c, nil
}

// rollDeployment gives a Deployment an image and, in the same request, its budgets.
func rollDeployment(client kubernetes.Interface, namespace, container, surge, unavailable string) func(context.Context, string) error {
	most, least := intstr.Parse(surge), intstr.Parse(unavailable)
	return func(ctx context.Context, image string) error {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{
			"strategy": map[string]any{"rollingUpdate": map[string]any{"maxSurge": &most, "maxUnavailable": &least}},
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": container, "image": image}}}},
		}})
		if err != nil {
			return err
		}
		_, err = client.AppsV1().Deployments(namespace).Patch(ctx, objectName, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		return err
	}
}

// deploymentSettled is what `kubectl rollout status` waits for.
func deploymentSettled(u map[string]any, n int) bool {
	if field[int64](u, "status", "observedGeneration") < field[int64](u, "metadata", "generation") {
		return false
	}
	for _, name := range []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"} {
		if field[int64](u, "status", name) != int64(n) {
			return false
		}
	}
	return true
}

// templateOf makes a template that gives pods like p, without what the API server added to it.
func templateOf(p *corev1.Pod, gated bool) corev1.PodTemplateSpec {
	spec := p.Spec.DeepCopy()
	spec.NodeName, spec.Priority, spec.PreemptionPolicy, spec.DeprecatedServiceAccount = "", nil, nil, ""
	spec.Tolerations, spec.EnableServiceLinks = nil, nil
	spec.ReadinessGates = nil
	if gated {
		spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: servingGate}}
	}
	const token = "kube-api-access-"
	spec.Volumes = without(spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, token) })
	for i := range spec.Containers {
		c := &spec.Containers[i]
		c.VolumeMounts = without(c.VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix(m.Name, token) })
	}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}, Annotations: p.Annotations}, Spec: *spec}
}

func without[T any](in []T, drop func(T) bool) (out []T) {
	for _, v := range in {
		if !drop(v) {
			out = append(out, v)
		}
	}
	return out
}

// setterRights are all that the setter may do.
func setterRights(ctx context.Context, client kubernetes.Interface, namespace string) error {
	meta := metav1.ObjectMeta{Name: setterUser}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
	}}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: setterUser},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: setterUser}},
	}
	if _, err := client.RbacV1().Roles(namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the role of the gate setter: %w", err)
	}
	if _, err := client.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("bind the role of the gate setter: %w", err)
	}
	return nil
}
