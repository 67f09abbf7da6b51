package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ome.io/ome/internal/validate"
)

// judge asks the rules of one kind. old is nil on create.
type judge[T any] func(obj, old *T, opts validate.Options) validate.Result

// handler answers for one kind.
type handler[T any] struct {
	judge judge[T]
	opts  Options
}

// NewServiceHandler judges InferenceServices.
func NewServiceHandler(opts Options) admission.Handler {
	return newHandler(opts, validate.InferenceService)
}

// NewReplicaHandler judges InferenceReplicas.
func NewReplicaHandler(opts Options) admission.Handler {
	return newHandler(opts, validate.InferenceReplica)
}

// NewRuntimeHandler judges ServingRuntimes.
func NewRuntimeHandler(opts Options) admission.Handler {
	return newHandler(opts, validate.ServingRuntime)
}

// NewClusterRuntimeHandler judges ClusterServingRuntimes.
func NewClusterRuntimeHandler(opts Options) admission.Handler {
	return newHandler(opts, validate.ClusterServingRuntime)
}

func newHandler[T any](opts Options, rules judge[T]) admission.Handler {
	return &handler[T]{judge: rules, opts: opts}
}

func (h *handler[T]) Handle(_ context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return admission.Allowed("")
	}
	now, err := validate.Decode[T](req.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var before validate.Decoded[T]
	if req.Operation == admissionv1.Update {
		if before, err = validate.Decode[T](req.OldObject.Raw); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("stored object: %w", err))
		}
	}
	if now.Broken != nil {
		// What is stored was admitted once. Its annotations and finalizers can still be edited.
		if before.Broken != nil && sameSpec(req.Object.Raw, req.OldObject.Raw) {
			return admission.Allowed("").WithWarnings("the manager can't read this object: " + now.Broken.Error())
		}
		return admission.Errored(http.StatusBadRequest, now.Broken)
	}
	// A field that this manager doesn't know would be admitted unseen, so it is refused unless it
	// was there before.
	typos := slices.DeleteFunc(now.Typos, func(typo string) bool { return slices.Contains(before.Typos, typo) })
	if len(typos) > 0 {
		return admission.Errored(http.StatusBadRequest, errors.New(validate.UnknownFields(typos)))
	}
	old := before.Object
	if before.Broken != nil {
		old = nil // nothing to compare with, so all of it is new
	}
	result := h.judge(now.Object, old, validate.Options{
		FromManager:    req.UserInfo.Username == h.opts.ManagerUser,
		KEDAServed:     h.opts.KEDAServed != nil && h.opts.KEDAServed(),
		PoliciesServed: h.opts.PoliciesServed,
		MaxPlanBytes:   h.opts.MaxPlanBytes,
	})
	if !result.OK() {
		return admission.Denied(result.Denial()).WithWarnings(result.WarningTexts()...)
	}
	return admission.Allowed("").WithWarnings(result.WarningTexts()...)
}

func sameSpec(raw, oldRaw []byte) bool {
	type part struct {
		Spec any `json:"spec"`
	}
	var now, old part
	return json.Unmarshal(raw, &now) == nil && json.Unmarshal(oldRaw, &old) == nil && equality.Semantic.DeepEqual(now, old)
}
