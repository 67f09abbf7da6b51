package webhook

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/validate"
)

// policyHandler judges RolloutPolicies. An edit of one and a delete also depend on who refers to
// it, which it reads from the API server: only the leader has services in a cache, and every
// replica answers.
type policyHandler struct {
	rules  admission.Handler
	reader client.Reader
}

// NewPolicyHandler judges RolloutPolicies. The reader must not be behind the API server.
func NewPolicyHandler(opts Options, reader client.Reader) admission.Handler {
	return &policyHandler{rules: newHandler(opts, validate.RolloutPolicy), reader: reader}
}

func (h *policyHandler) Handle(ctx context.Context, req admission.Request) admission.Response {
	switch req.Operation {
	case admissionv1.Delete:
		return h.remove(ctx, req)
	case admissionv1.Update:
		return h.update(ctx, req)
	}
	return h.rules.Handle(ctx, req)
}

// update adds to the policy's own rules what its users decide.
func (h *policyHandler) update(ctx context.Context, req admission.Request) admission.Response {
	answer := h.rules.Handle(ctx, req)
	if !answer.Allowed {
		return answer
	}
	now, old, err := both(req)
	if err != nil || now == nil || old == nil || equality.Semantic.DeepEqual(now.Spec, old.Spec) {
		return answer // nothing that a user could notice; the rules have judged what can't be read
	}
	users, err := h.users(ctx, req.Namespace, req.Name)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	result := validate.PolicyUpdate(now, old, users)
	warnings := append(slices.Clone(answer.Warnings), result.WarningTexts()...)
	if !result.OK() {
		return admission.Denied(result.Denial()).WithWarnings(warnings...)
	}
	answer.Warnings = warnings
	return answer
}

func both(req admission.Request) (now, old *v1beta1.RolloutPolicy, err error) {
	for _, part := range []struct {
		raw  []byte
		into **v1beta1.RolloutPolicy
	}{{req.Object.Raw, &now}, {req.OldObject.Raw, &old}} {
		d, err := validate.Decode[v1beta1.RolloutPolicy](part.raw)
		if err != nil {
			return nil, nil, err
		}
		if d.Broken == nil {
			*part.into = d.Object
		}
	}
	return now, old, nil
}

// remove refuses to take away what somebody refers to. A namespace on its way out takes all with
// it, in any order.
func (h *policyHandler) remove(ctx context.Context, req admission.Request) admission.Response {
	d, err := validate.Decode[v1beta1.RolloutPolicy](req.OldObject.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("stored object: %w", err))
	}
	p := &v1beta1.RolloutPolicy{}
	if d.Broken == nil {
		p.Annotations = d.Object.Annotations
	}
	p.Name = req.Name
	users, err := h.users(ctx, req.Namespace, req.Name)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	result := validate.PolicyDelete(p, users)
	if result.OK() {
		return admission.Allowed("")
	}
	going, err := h.terminating(ctx, req.Namespace)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if going {
		return admission.Allowed("")
	}
	return admission.Denied(result.Denial())
}

func (h *policyHandler) terminating(ctx context.Context, namespace string) (bool, error) {
	var ns corev1.Namespace
	if err := h.reader.Get(ctx, types.NamespacedName{Name: namespace}, &ns); err != nil {
		return false, fmt.Errorf("reading Namespace %s: %w", namespace, err)
	}
	return ns.DeletionTimestamp != nil, nil
}

// servicesAtOnce bounds one answer of the API server.
const servicesAtOnce = 500

// users names the services of a namespace that refer to a policy, sorted. Services on their way out
// don't count: they start no further run. They are read as they are stored, so that one that this
// manager can't read doesn't stand in the way.
func (h *policyHandler) users(ctx context.Context, namespace, policy string) ([]string, error) {
	var names []string
	page := ""
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.InferenceServiceKind + "List"))
		if err := h.reader.List(ctx, list, client.InNamespace(namespace), client.Limit(servicesAtOnce), client.Continue(page)); err != nil {
			return nil, fmt.Errorf("looking for InferenceServices that refer to RolloutPolicy %s/%s: %w", namespace, policy, err)
		}
		for i := range list.Items {
			s := &list.Items[i]
			if s.GetDeletionTimestamp() == nil && refersTo(s.Object, policy) {
				names = append(names, s.GetName())
			}
		}
		if page = list.GetContinue(); page == "" {
			slices.Sort(names)
			return names, nil
		}
	}
}

func refersTo(service map[string]any, policy string) bool {
	groups, _, _ := unstructured.NestedSlice(service, "spec", "rollout", "groups")
	for _, g := range groups {
		group, ok := g.(map[string]any)
		if !ok {
			continue
		}
		name, _, _ := unstructured.NestedString(group, "policyRef", "name")
		kind, _, _ := unstructured.NestedString(group, "policyRef", "kind")
		if name == policy && plan.KnownPolicyKind(kind) {
			return true
		}
	}
	return false
}
