// Package v1beta1 holds the ome.io/v1beta1 API: the objects people write, the status the manager
// reports, and every string both sides agree on (annotation and label keys, condition types,
// reasons), each declared once as a documented constant.
//
// A comment above a field starts with the field's JSON name and becomes its description in the
// CRD. A rule that has a reason code of its own lives in the admission webhook and not in these
// markers: the schema is checked first and would hide the code.
//
// The package imports Kubernetes API types only.
//
// +kubebuilder:object:generate=true
// +groupName=ome.io
package v1beta1
