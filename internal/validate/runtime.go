package validate

import (
	"regexp"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

// ServingRuntime judges a runtime of a namespace. old is nil on create.
func ServingRuntime(rt, old *v1beta1.ServingRuntime, opts Options) Result {
	now := runtimeSubject{&rt.ObjectMeta, &rt.Spec}
	if old == nil {
		return judgeRuntime(now, nil, opts)
	}
	return judgeRuntime(now, &runtimeSubject{&old.ObjectMeta, &old.Spec}, opts)
}

// ClusterServingRuntime judges a runtime of the cluster. old is nil on create.
func ClusterServingRuntime(rt, old *v1beta1.ClusterServingRuntime, opts Options) Result {
	now := runtimeSubject{&rt.ObjectMeta, &rt.Spec}
	if old == nil {
		return judgeRuntime(now, nil, opts)
	}
	return judgeRuntime(now, &runtimeSubject{&old.ObjectMeta, &old.Spec}, opts)
}

// runtimeSubject is what both kinds of runtime have.
type runtimeSubject struct {
	meta *metav1.ObjectMeta
	spec *v1beta1.ServingRuntimeSpec
}

func (s runtimeSubject) annotation(key string) any {
	value := s.meta.Annotations[key]
	return when(value != "", func() any { return value })
}

// runtimeRow is one thing that a runtime may say and nothing here does.
type runtimeRow struct {
	field string
	value func(runtimeSubject) any
	// text says what is wrong and what to do instead.
	text string
	code string
	warn bool
}

var runtimeRows = []runtimeRow{
	{field: "metadata.annotations[" + v1beta1.InheritFromAnnotation + "]",
		value: func(s runtimeSubject) any { return s.annotation(v1beta1.InheritFromAnnotation) },
		text:  "not supported yet; write the parent's templates into this runtime and remove the annotation"},
	{field: "metadata.annotations[" + v1beta1.RuntimeProfileAnnotation + "]",
		value: func(s runtimeSubject) any {
			on := s.meta.Annotations[v1beta1.RuntimeProfileAnnotation] == "true"
			return when(on && (s.spec.Disabled == nil || !*s.spec.Disabled), func() any { return "enabled" })
		},
		text: "a profile is not served itself; set spec.disabled: true, or remove the annotation"},
	{field: "spec.containers", value: func(s runtimeSubject) any { return s.spec.Containers }, text: flat},
	{field: "spec.volumes", value: func(s runtimeSubject) any { return s.spec.Volumes }, text: flat},
	{field: "spec.imagePullSecrets", value: func(s runtimeSubject) any { return s.spec.ImagePullSecrets }, text: flat},
	{field: "spec.nodeSelector", value: func(s runtimeSubject) any { return s.spec.NodeSelector }, text: flat},
	{field: "spec.labels", value: func(s runtimeSubject) any { return s.spec.Labels }, text: flat},
	{field: "spec.annotations", value: func(s runtimeSubject) any { return s.spec.Annotations }, text: flat},
	{field: "spec.affinity", value: func(s runtimeSubject) any { return s.spec.Affinity }, text: flat},
	{field: "spec.tolerations", value: func(s runtimeSubject) any { return s.spec.Tolerations }, text: flat},
	{field: "spec.schedulerName", value: func(s runtimeSubject) any { return said(s.spec.SchedulerName) }, text: flat},
	{field: "spec.dnsPolicy", value: func(s runtimeSubject) any { return said(string(s.spec.DNSPolicy)) }, text: flat},
	{field: "spec.hostIPC", value: func(s runtimeSubject) any { return when(s.spec.HostIPC, func() any { return true }) }, text: flat},
	{field: "spec.hostNetwork", value: func(s runtimeSubject) any { return when(s.spec.HostNetwork, func() any { return true }) }, text: flat},
	{field: "spec.acceleratorRequirements", value: func(s runtimeSubject) any { return s.spec.AcceleratorRequirements },
		text: "not supported yet; request the resource in the runner, and choose nodes with nodeSelector or affinity of the component"},
	{field: "spec.scalingPolicy.mode", value: func(s runtimeSubject) any {
		p := s.spec.ScalingPolicy
		return when(p != nil && p.Mode != "" && p.Mode != v1beta1.ScalingIndependent, func() any { return p.Mode })
	}, text: "not implemented; use Independent", code: CodeScalingModeNotImplemented},
	{field: "spec.supportedModelFormats[].acceleratorConfig", value: func(s runtimeSubject) any {
		var out []any
		for _, f := range s.spec.SupportedModelFormats {
			if len(f.AcceleratorConfig) > 0 {
				out = append(out, f.AcceleratorConfig)
			}
		}
		return out
	}, text: "has no effect yet: no accelerator class is chosen, so set arguments and environment in the runner", warn: true},
	{field: "spec.supportedModelFormats[].autoSelect", value: func(s runtimeSubject) any {
		for _, f := range s.spec.SupportedModelFormats {
			if f.AutoSelect != nil && *f.AutoSelect {
				return true
			}
		}
		return nil
	}, text: "has no effect yet: a service names its runtime in spec.runtime.name", warn: true},
}

const flat = "a flat pod template is not supported; move it into spec.engineConfig"

func said(value string) any { return when(value != "", func() any { return value }) }

// componentRules are the rules on a service's components that hold for a runtime's as well.
var componentRules = []rule{
	{readsLeaderWorker, checkLeaderWorker},
	{readsBudgets, checkBudgets},
	{readsBounds, checkBounds},
	{readsDisruption, checkDisruption},
	{readsAutoscalers, checkAutoscalers},
}

func judgeRuntime(now runtimeSubject, old *runtimeSubject, opts Options) Result {
	var r Result
	if now.meta.DeletionTimestamp != nil {
		return r
	}
	for _, row := range runtimeRows {
		value := row.value(now)
		if unset(value) || old != nil && equality.Semantic.DeepEqual(value, row.value(*old)) {
			continue
		}
		if row.warn {
			r.warn(row.field, row.code, "%s", row.text)
		} else {
			r.refuse(row.field, row.code, "%s", row.text)
		}
	}
	r.add(judgeTemplates(now, old, opts))
	var before map[string]string
	if old != nil {
		before = old.meta.Annotations
	}
	checkAnnotations(&r, now.meta.Annotations, before)
	return r
}

// judgeTemplates asks the rules on components, through a service that has the templates as its own.
func judgeTemplates(now runtimeSubject, old *runtimeSubject, opts Options) Result {
	var r Result
	s := asService(now.spec)
	var was *v1beta1.InferenceService
	if old != nil {
		was = asService(old.spec)
	}
	for _, rule := range componentRules {
		if was == nil || !equality.Semantic.DeepEqual(rule.reads(s), rule.reads(was)) {
			rule.check(&r, s)
		}
	}
	checkUnsupported(&r, s, was)
	checkKEDA(&r, s, was, opts)
	checkComponentAnnotations(&r, s, was)
	for _, problems := range [][]Problem{r.Errors, r.Warnings} {
		for i := range problems {
			problems[i].Field = inRuntime.ReplaceAllString(problems[i].Field, "spec.${1}Config")
			problems[i].Message = inRuntime.ReplaceAllString(problems[i].Message, "spec.${1}Config")
		}
	}
	return r
}

func asService(spec *v1beta1.ServingRuntimeSpec) *v1beta1.InferenceService {
	return &v1beta1.InferenceService{Spec: v1beta1.InferenceServiceSpec{
		Engine: spec.EngineConfig, Decoder: spec.DecoderConfig, Router: spec.RouterConfig,
	}}
}

var inRuntime = regexp.MustCompile(`\bspec\.(engine|decoder|router)\b`)

func (r *Result) add(other Result) {
	r.Errors = append(r.Errors, other.Errors...)
	r.Warnings = append(r.Warnings, other.Warnings...)
}
