package guarded

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ome.io/ome/api/v1beta1"
)

// Messages of scale beside the shared ones.
const (
	MsgScaleArguments = "invalid scale arguments; require one service, component engine|decoder|router, positive base-10 --replicas, supported output/dry-run and valid namespace/context/timeout"
	MsgScaleNamespace = "scale namespace is unavailable or invalid"
	MsgScaleContext   = "scale context is unavailable or unsafe"

	msgScaleOverride   = "manual scale is transient and requires --override-autoscaler --yes for every ownership class"
	msgScaleSource     = "manual scale source evidence is unavailable or inconsistent"
	msgScalePolicy     = "manual scale requires locally verifiable autoscaling; winning policy resolution is unavailable"
	msgScaleIncomplete = "manual scale requires complete current selected replica and Scale evidence"
	msgScaleActive     = "manual scale refused: selected lifecycle, migration or rollout work is active"
	msgScaleBounds     = "manual scale replicas must be positive and within verified bounds and partitions"
	msgScaleChanged    = "manual scale source changed; inspect current status and prepare a new request"
	msgScaleUnknown    = "scale request outcome unknown; inspect kubectl ome autoscale status before preparing another request"
)

const (
	subresourceScale = "scale"
	kindScale        = "Scale"
	scaleVersion     = "autoscaling/v1"
	scaleField       = "/scale spec.replicas"
)

// maxScaleCell is where a long value of the preview goes on in the next row.
const maxScaleCell = 96

// RolloutView is what rollout status says about one component.
type RolloutView struct {
	// Issues keep the report from being complete; those that say nothing about
	// safety are left out.
	Issues []string
	// Phase is the component's, GroupPhase that of its group; empty without one.
	Phase, GroupPhase string
}

// Scale is a wanted Instance count of one component.
type Scale struct {
	Component v1beta1.ComponentType
	Replicas  int32
	// Override says that the caller knows who owns the count.
	Override bool
	// Rollout reads the service the way rollout status does.
	Rollout func(*v1beta1.InferenceService, v1beta1.ComponentType) RolloutView
}

// ScaleCount sets the Instance count of one component until its owner sets it
// again. It goes through the scale subresource of the component's InferenceReplica.
func ScaleCount(req Scale) *Action {
	return &Action{
		Name:    "scale",
		Title:   "ALPHA guarded scale preview (not controller convergence)",
		Reads:   Reads{Runtime: true, Replicas: true, Component: req.Component, Scale: true},
		Demand:  req.demand,
		Subject: replicaSubject(req.Component, subresourceScale),
		Early:   []Refusal{req.refuseTooManyRows},
		Refusals: []Refusal{
			req.refuseSource, req.refusePolicy, req.refuseIncomplete, req.refuseStale, req.refuseActive,
			req.refuseBounds, refuseMailbox(letItBeConsumed), req.refuseUnsafe,
		},
		Change:     func(ev *Evidence) Change { return Change{Scale: &Count{req.prior(ev), req.Replicas}} },
		Preview:    req.preview,
		SecondRead: &SecondRead{Changed: msgScaleChanged, ChangedCode: ExitFailed, FailedCode: ExitFailed},
		Result:     req.result,
		Words: Words{
			Accepted:      "API accepted transient scale request; convergence not observed.",
			Validated:     "Validated locally; no scale patch sent.",
			Conflict:      "guarded scale precondition rejected; inspect current status and prepare a new request",
			Unknown:       msgScaleUnknown,
			Unbound:       msgScaleUnknown,
			WriteFailed:   "write scale result failed; API acceptance may already have occurred; inspect current status",
			PreviewFailed: "write scale preview failed; no request submitted",
			Setup: map[string]string{
				MsgName:                MsgScaleArguments,
				MsgNamespaceUnresolved: MsgReadFailed,
				MsgNamespaceInvalid:    MsgScaleNamespace,
				MsgContext:             MsgScaleContext,
			},
			FollowUp: func(ev *Evidence) string { return ev.Command("autoscale status") },
		},
	}
}

// demand checks the two confirmations, which this action never prompts for.
func (s Scale) demand(opts Options) *Error {
	switch {
	case ValidateNamespace(opts.OMENamespace) != nil:
		return Refuse(MsgScaleArguments, "--ome-namespace is no name of a namespace: "+Quote(Clean(opts.OMENamespace)))
	case !s.Override:
		return Refuse(msgScaleOverride, "whoever owns the count, such as an autoscaler, may set it back at any time; check it first with --dry-run=server")
	case !opts.Yes:
		return Refuse(MsgScaleArguments, "--override-autoscaler requires --yes", "this request is never prompted for; check it first with --dry-run=server --yes")
	}
	return nil
}

// prior is the count as the scale subresource has it.
func (s Scale) prior(ev *Evidence) int32 {
	if ev.Selected == nil || ev.Selected.Replicas == nil {
		return 0
	}
	return *ev.Selected.Replicas
}

// proofs are the replicas whose state the request rests on: the selected one, and
// while a run is open its siblings too, since the run moves them together.
func (s Scale) proofs(ev *Evidence) []*Replica {
	running := ev.Service.Status.Rollout != nil && ev.Service.Status.Rollout.ActiveRun != nil
	var out []*Replica
	for i := range ev.Replicas {
		if r := &ev.Replicas[i]; running || r.Object.Spec.Component == s.Component {
			out = append(out, r)
		}
	}
	return out
}

// siblings words the proofs besides the selected replica, one each.
func (s Scale) siblings(ev *Evidence) []string {
	var out []string
	for _, r := range s.proofs(ev) {
		if o := r.Object; o.Spec.Component != s.Component {
			out = append(out, fmt.Sprintf("%s %s uid %s generation %d", o.Spec.Component, o.Name, o.UID, o.Generation))
		}
	}
	return out
}

func (s Scale) preview(ev *Evidence) ([]Row, []string) {
	parent := ev.Service
	o := ev.replica(s.Component).Object
	bounds, owner := s.bounds(ev), s.owner(ev)
	var rows []Row
	add := func(label, value string) { rows = append(rows, continued(label, value, maxScaleCell)...) }
	add("context", ev.Context)
	add("workload namespace", ev.Namespace)
	add("OME namespace", ev.OMENamespace)
	add("parent", v1beta1.InferenceServiceKind+"/"+parent.Name)
	add("parent UID", string(parent.UID))
	add("parent generation", fmt.Sprint(parent.Generation))
	add("IR", v1beta1.InferenceReplicaKind+"/"+o.Name)
	add("IR UID", string(o.UID))
	add(rowReplicaVersion, o.ResourceVersion)
	add("IR generation", fmt.Sprint(o.Generation))
	add("parent stamp", o.Annotations[v1beta1.ParentGenerationAnnotation])
	add("component", string(s.Component))
	add(scaleField, fmt.Sprintf("%d -> %d", s.prior(ev), s.Replicas))
	add("bounds", bounds.String())
	add("verified ownership", owner.String())
	add("verified source", owner.source)
	add("override / transient", "true / true")
	add("dry-run", string(ev.DryRun))
	add("reported Instances", instancesOf(o).String())
	add("lifecycle / canary", "No observed selected active work")
	add("parent freshness", "Unverifiable (advisory)")
	label := "pinned sibling proof"
	for _, text := range s.siblings(ev) {
		add(label, text)
		label = ""
	}
	add("IR proofs revalidated", fmt.Sprint(len(s.proofs(ev))))
	return rows, []string{
		"Note: the count is transient; it isn't written to the InferenceService.",
		"Note: whoever owns the count may overwrite it at any time: " + owner.overwrites() + ".",
		"Note: a lower count drains Instances, also while the service is paused.",
		"Note: the guard is on the InferenceReplica alone; the service, its other replicas and its scaler may move meanwhile.",
	}
}

// ScaleResult is the part of a result that only scale has.
type ScaleResult struct {
	Component             string         `json:"component"`
	Subresource           string         `json:"subresource"`
	Field                 string         `json:"field"`
	PriorReplicas         int32          `json:"priorReplicas"`
	RequestedReplicas     int32          `json:"requestedReplicas"`
	MinReplicas           int32          `json:"minReplicas"`
	MaxReplicas           int32          `json:"maxReplicas"`
	Class                 string         `json:"class"`
	ManagedBy             string         `json:"managedBy"`
	SpecSource            string         `json:"specSource"`
	Override              bool           `json:"override"`
	Transient             bool           `json:"transient"`
	Parent                ScaleParent    `json:"parent"`
	Sources               []Identity     `json:"sources"`
	ReplicaGeneration     int64          `json:"replicaGeneration"`
	ParentGenerationStamp int64          `json:"parentGenerationStamp"`
	ParentFreshness       string         `json:"parentFreshness"`
	Instances             ScaleInstances `json:"instances"`
	Issues                []string       `json:"issues"`
	Warnings              []string       `json:"warnings"`
}

// ScaleParent is the service that the replica belongs to.
type ScaleParent struct {
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Generation int64  `json:"generation"`
}

// ScaleInstances are the reported counts before the change.
type ScaleInstances struct {
	Replicas  int32 `json:"replicas"`
	Ready     int32 `json:"ready"`
	Serving   int32 `json:"serving"`
	Available int32 `json:"available"`
}

func (i ScaleInstances) String() string {
	return fmt.Sprintf("%d total; %d ready; %d serving; %d available", i.Replicas, i.Ready, i.Serving, i.Available)
}

func instancesOf(o *v1beta1.InferenceReplica) ScaleInstances {
	st := &o.Status
	return ScaleInstances{st.Replicas, st.ReadyReplicas, st.ServingReplicas, st.AvailableReplicas}
}

// issueDesiredCount says that the replica doesn't report as many Instances as it
// was asked for.
const issueDesiredCount = "ReportedDesiredCountDiscrepancy"

// scaleWarnings hold for every request of this kind.
var scaleWarnings = []string{"AlphaAction", "AutoscalerCanOverwrite", "NotMultiObjectTransaction", "ScaleDownCanDrain", "TransientReplicaRequest"}

func (s Scale) result(ev *Evidence, res *ActionResult) {
	o := ev.replica(s.Component).Object
	bounds, owner := s.bounds(ev), s.owner(ev)
	stamp, _ := strconv.ParseInt(o.Annotations[v1beta1.ParentGenerationAnnotation], 10, 64)
	p := ev.Service
	res.Scale = &ScaleResult{
		Component: string(s.Component), Subresource: "/" + subresourceScale, Field: "spec.replicas",
		PriorReplicas: s.prior(ev), RequestedReplicas: s.Replicas, MinReplicas: bounds.least, MaxReplicas: bounds.most,
		Class: string(owner.class), ManagedBy: owner.managedBy, SpecSource: owner.source, Override: true, Transient: true,
		Parent:            ScaleParent{v1beta1.InferenceServiceKind, p.Namespace, p.Name, string(p.UID), p.Generation},
		Sources:           s.sources(ev),
		ReplicaGeneration: o.Generation, ParentGenerationStamp: stamp, ParentFreshness: "Unverifiable",
		Instances: instancesOf(o), Issues: []string{}, Warnings: slices.Clone(scaleWarnings),
	}
	if o.Status.Replicas != s.prior(ev) {
		res.Scale.Issues = append(res.Scale.Issues, issueDesiredCount)
	}
}

// sources are the dependencies: what was read besides the service and the replica.
func (s Scale) sources(ev *Evidence) []Identity {
	out := []Identity{}
	proofs := map[string]bool{}
	for _, r := range s.proofs(ev) {
		proofs[r.Object.Name] = true
	}
	for _, i := range ev.dependencies(s.Component) {
		if i.Kind != v1beta1.InferenceReplicaKind || proofs[i.Name] {
			out = append(out, i)
		}
	}
	return out
}

// scaleRows is the result's table. The wide one adds what the JSON has besides.
func scaleRows(r *ActionResult, wide bool) [][2]string {
	s := r.Scale
	rows := [][2]string{
		{"action", r.Action},
		{"target", r.Target.Kind + "/" + r.Target.Namespace + "/" + r.Target.Name},
	}
	add := func(label, value string) { rows = append(rows, [2]string{label, value}) }
	if wide {
		add("uid", r.Target.UID)
		add("resource-version", r.Target.ResourceVersion)
		add("generation", fmt.Sprint(s.ReplicaGeneration))
		add("parent", s.Parent.Kind+"/"+s.Parent.Namespace+"/"+s.Parent.Name)
		add("parent uid", s.Parent.UID)
		add("parent generation", fmt.Sprint(s.Parent.Generation))
		add("parent stamp", fmt.Sprint(s.ParentGenerationStamp))
		for _, i := range s.Sources {
			add("dependency", i.String())
			add("dependency uid", i.UID)
			add("dependency resource-version", i.ResourceVersion)
		}
	}
	add("component", s.Component)
	add("field", scaleField)
	add("replicas", fmt.Sprintf("%d -> %d", s.PriorReplicas, s.RequestedReplicas))
	add("bounds", fmt.Sprintf("%d..%d", s.MinReplicas, s.MaxReplicas))
	add("class / owner", s.Class+" / "+s.ManagedBy)
	add("source", s.SpecSource)
	add("override", fmt.Sprint(s.Override))
	add("transient", fmt.Sprint(s.Transient))
	add("dry-run", string(r.DryRun))
	add("accepted", yesNo(r.Accepted))
	add("applied", yesNo(r.Applied))
	add("instances", s.Instances.String())
	add("parent freshness", s.ParentFreshness)
	if wide {
		for _, w := range s.Warnings {
			add("warning", w)
		}
		add("issue", strings.Join(s.Issues, ","))
	}
	add("message", r.Message)
	add("follow-up", r.FollowUp)
	return rows
}
