package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/validate"
)

// judge asks the rules of one kind. old is nil on create.
type judge[T any] func(obj, old *T, opts validate.Options) validate.Result

// handler answers for one kind.
type handler[T any] struct {
	decode      runtime.Decoder
	judge       judge[T]
	managerUser string
}

// NewServiceHandler judges InferenceServices. managerUser is the manager's user name.
func NewServiceHandler(scheme *runtime.Scheme, managerUser string) admission.Handler {
	return newHandler(scheme, managerUser, validate.InferenceService)
}

// NewReplicaHandler judges InferenceReplicas. managerUser is the manager's user name.
func NewReplicaHandler(scheme *runtime.Scheme, managerUser string) admission.Handler {
	return newHandler(scheme, managerUser, validate.InferenceReplica)
}

func newHandler[T any](scheme *runtime.Scheme, managerUser string, rules judge[T]) admission.Handler {
	return &handler[T]{
		decode:      serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(),
		judge:       rules,
		managerUser: managerUser,
	}
}

func (h *handler[T]) Handle(_ context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return admission.Allowed("")
	}
	obj, err := h.read(req.Object.Raw, req.OldObject.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var old *T
	if req.Operation == admissionv1.Update {
		old = new(T)
		// What is stored was admitted once, and is only compared with.
		if err := json.Unmarshal(req.OldObject.Raw, old); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("stored object: %w", err))
		}
	}
	result := h.judge(obj, old, validate.Options{FromManager: req.UserInfo.Username == h.managerUser})
	if !result.OK() {
		return admission.Denied(result.Denial()).WithWarnings(result.WarningTexts()...)
	}
	return admission.Allowed("").WithWarnings(result.WarningTexts()...)
}

// read decodes strictly what the rules judge. A field that this manager doesn't know would be
// admitted unseen, so it is refused, unless the request leaves the spec as it is stored. Status is
// left out: no rule reads it, and a newer writer's fields are welcome there.
func (h *handler[T]) read(raw, oldRaw []byte) (*T, error) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, err
	}
	out := new(T)
	if sameSpec(parts["spec"], oldRaw) {
		return out, json.Unmarshal(raw, out)
	}
	delete(parts, "status")
	trimmed, err := json.Marshal(parts)
	if err != nil {
		return nil, err
	}
	decoded, _, err := h.decode.Decode(trimmed, nil, any(out).(runtime.Object))
	if err != nil {
		if runtime.IsStrictDecodingError(err) {
			return nil, fmt.Errorf("%w; the manager of this cluster doesn't know the field: remove it, or upgrade the manager", err)
		}
		return nil, err
	}
	same, ok := decoded.(any).(*T)
	if !ok {
		return nil, fmt.Errorf("got %T in version %s, expected %T", decoded, v1beta1.GroupVersion, out)
	}
	return same, nil
}

func sameSpec(spec json.RawMessage, oldRaw []byte) bool {
	if len(oldRaw) == 0 {
		return false
	}
	var old struct {
		Spec any `json:"spec"`
	}
	if err := json.Unmarshal(oldRaw, &old); err != nil {
		return false
	}
	var now any
	if len(spec) > 0 {
		if err := json.Unmarshal(spec, &now); err != nil {
			return false
		}
	}
	return equality.Semantic.DeepEqual(now, old.Spec)
}
