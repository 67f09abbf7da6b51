package instance

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/revision"
)

// An update in place changes the images of a running pod: out of rotation, one patch
// with the new images, the new revision's label and the transition record, then back
// into rotation once every changed container runs its new image. The label moves with
// the spec, so that a pod's label always says what its spec asks for.

// transition is the record on the pod while its images change.
type transition struct {
	// TargetImages are the images asked for, by container.
	TargetImages map[string]string `json:"targetImages"`
	// From is what ran when the change was made.
	From map[string]origin `json:"from,omitempty"`
}

type origin struct {
	ContainerID string `json:"containerID,omitempty"`
	Image       string `json:"image,omitempty"`
	ImageID     string `json:"imageID,omitempty"`
}

// images are the images to change to bring a pod of one revision to another; ok is
// false when more than images differ, or when a template cannot be had.
func (d *decider) images(from, to string) (map[string]string, bool) {
	a, b := d.in.Revisions[from], d.in.Revisions[to]
	if a.Template == nil || b.Template == nil || a.Token != b.Token {
		return nil, false
	}
	key := [2]string{from, to}
	if known, seen := d.imagesOf[key]; seen {
		return known, known != nil
	}
	var changed map[string]string
	if x, y := a.Template(), b.Template(); x != nil && y != nil {
		if images, ok := revision.ImageOnly(x, y, d.in.ExcludedAnnotations...); ok {
			changed = images
		}
	}
	if d.imagesOf == nil {
		d.imagesOf = map[[2]string]map[string]string{}
	}
	d.imagesOf[key] = changed
	return changed, changed != nil
}

func (d *decider) openInPlace(row *v1beta1.InstanceStatus, revision, reason string) {
	d.open(row, v1beta1.OperationUpdate, v1beta1.StepInPlace, revision, reason)
	row.Operation.Strategy = v1beta1.InPlaceIfPossible
	if d.in.Strategy == v1beta1.InPlaceOnly {
		row.Operation.Strategy = v1beta1.InPlaceOnly
	}
}

func (d *decider) advanceInPlace(row *v1beta1.InstanceStatus) {
	s := d.podsOf(row.Index)
	p := s.bySlot[row.ActiveOrdinal]
	d.retargetInPlace(row, p)
	op := row.Operation
	d.removeStrays(s, op)
	if !p.live() || p.unschedulable {
		// What finds no node may find one made anew: images are not all that it asks for.
		d.toRebuild(row)
		return
	}
	if p.hash != d.hashOf(op.TargetRevision) {
		images, ok := d.images(d.revisionOf(p.hash), op.TargetRevision)
		if !ok {
			d.toRebuild(row) // the target moved on to one that needs a new pod
			return
		}
		if d.held(op.TargetRevision) && op.TargetRevision != row.RunningRevision && p.transition() == nil && d.callOff(row, p) {
			return // it was held before this pod was changed to it
		}
		changing := p.transition() != nil && !p.moved()
		if p.serving() && !changing && !d.mayTakeOut(row) && d.callOff(row, p) {
			return
		}
		if !d.in.KeepInRotation {
			if p.gate {
				d.act(PodUnserve, p, op, "InPlaceUpdate")
				return
			}
			if p.routed || p.ready {
				return
			}
		}
		d.patchImages(p, op, images)
		return
	}
	if !p.moved() {
		return
	}
	if p.containersReady && !p.gate {
		d.act(PodServe, p, op, "InRotation")
		return
	}
	ok, due := p.available(d.in)
	d.wakeAt(due)
	switch {
	case !ok:
	case p.transition() != nil:
		d.res.Pods = append(d.res.Pods, PodAction{Verb: PodUpdate, Pod: p.obj, Operation: op.ID, Reason: "InPlaceUpdateDone",
			Patch: &PodPatch{Annotations: map[string]*string{v1beta1.InPlaceImageTransitionAnnotation: nil}}})
	default:
		d.settle(row, op.TargetRevision)
		if d.in.KeepInRotation {
			// The gate did not turn, so it can't tell since when this process serves.
			row.ReadySince = new(metav1.NewTime(d.in.Now))
		}
	}
}

// toRebuild goes on with a new pod where the old one can't be changed.
func (d *decider) toRebuild(row *v1beta1.InstanceStatus) {
	d.toStep(row, v1beta1.StepDrain)
	row.Incarnation++
	d.advanceRebuild(row)
}

func (d *decider) retargetInPlace(row *v1beta1.InstanceStatus, p *pod) {
	op, want := row.Operation, d.wants(row)
	if op.TargetRevision == want || d.in.Paused || !p.live() {
		return
	}
	if _, ok := d.images(d.revisionOf(p.hash), want); !ok && p.hash != d.hashOf(want) &&
		((op.Strategy == v1beta1.InPlaceOnly && d.in.Strategy == v1beta1.InPlaceOnly) || p.serving()) {
		return // this update ends first
	}
	if want != row.RunningRevision && (!d.mayStart() || d.mayAttempt(want) != nil) {
		return
	}
	if p.hash != d.hashOf(want) && p.serving() && p.moved() && !d.mayTakeOut(row) {
		return // likewise: it serves, and another must not go out just now
	}
	strategy := op.Strategy
	if strategy == v1beta1.InPlaceOnly && d.in.Strategy != v1beta1.InPlaceOnly {
		strategy = d.pinned() // it starts anew, under what is wanted now
	}
	d.open(row, v1beta1.OperationUpdate, v1beta1.StepInPlace, want, op.Reason)
	row.Operation.Strategy, row.Operation.RetryCount = strategy, d.beginAttempt(want)
}

func (d *decider) patchImages(p *pod, op *v1beta1.InstanceOperation, images map[string]string) {
	t := transition{TargetImages: images, From: map[string]origin{}}
	for i := range p.obj.Status.ContainerStatuses {
		if c := &p.obj.Status.ContainerStatuses[i]; images[c.Name] != "" {
			t.From[c.Name] = origin{ContainerID: c.ContainerID, Image: c.Image, ImageID: c.ImageID}
		}
	}
	raw, err := json.Marshal(t)
	if err != nil {
		return // maps of strings always marshal
	}
	d.res.Pods = append(d.res.Pods, PodAction{Verb: PodUpdate, Pod: p.obj, Operation: op.ID, Reason: "InPlaceUpdate", Patch: &PodPatch{
		Images: images,
		Labels: map[string]string{v1beta1.RevisionHashLabel: d.hashOf(op.TargetRevision)},
		Annotations: map[string]*string{
			v1beta1.InPlaceImageTransitionAnnotation: new(string(raw)),
		},
	}})
}

// transition is the pod's record; nil when it has none that can be read.
func (p *pod) transition() *transition {
	raw := p.obj.Annotations[v1beta1.InPlaceImageTransitionAnnotation]
	if raw == "" {
		return nil
	}
	t := &transition{}
	if json.Unmarshal([]byte(raw), t) != nil {
		return &transition{}
	}
	return t
}

// moved is true once every changed container runs its new image. Readiness alone does
// not say so: it is still that of the old process for a while.
func (p *pod) moved() bool {
	t := p.transition()
	if t == nil {
		return true
	}
	st := &p.obj.Status
	if st.ObservedGeneration != 0 && st.ObservedGeneration < p.obj.Generation {
		return false
	}
	for name, image := range t.TargetImages {
		i := slices.IndexFunc(st.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == name })
		if i < 0 || st.ContainerStatuses[i].State.Running == nil {
			return false
		}
		c, from := &st.ContainerStatuses[i], t.From[name]
		fresh := c.ContainerID != from.ContainerID
		switch {
		case sameImage(c.Image, image) && (fresh || sameImage(from.Image, image)):
		case fresh && c.ImageID != "" && c.ImageID != from.ImageID:
			// A runtime may report another name of the same image.
		default:
			return false
		}
	}
	return true
}

// sameImage compares names of images as container runtimes spell them.
func sameImage(a, b string) bool { return plainImage(a) == plainImage(b) }

func plainImage(name string) string {
	for _, prefix := range []string{"docker.io/", "library/"} {
		name = strings.TrimPrefix(name, prefix)
	}
	if at := strings.LastIndexByte(name, '/'); !strings.ContainsAny(name[at+1:], ":@") {
		name += ":latest"
	}
	return name
}
