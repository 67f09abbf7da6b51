package guarded

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/revision"
)

// Messages of release-held beside the shared ones.
const (
	MsgNotReleasable  = "action refused: no exact current valid Held retry block is releasable"
	MsgReleasePending = "action refused: a release-held mailbox is already present; inspect instance retry-blocks"
	MsgComponent      = "component must be engine, decoder or router"
	MsgRevision       = "revision must be a full target revision or eight lowercase hex"

	msgReleaseUnknown = "held-release request outcome unknown; inspect instance retry-blocks before another explicit request"
	msgReleaseStale   = "held-release preview became stale; inspect instance retry-blocks and retry explicitly"
)

// Release names the revision to let go.
type Release struct {
	Component v1beta1.ComponentType
	// Revision is a full name, or its hash alone.
	Revision string
}

// Check says what is wrong with the flags.
func (r Release) Check() error {
	if !v1beta1.IsComponent(r.Component) {
		return usage(MsgComponent, "got "+Quote(Clean(string(r.Component)))+"; pass --component")
	}
	hash := r.Revision
	if i := strings.LastIndexByte(hash, '-'); i >= 0 && isSubdomain(hash[:i]) {
		hash = hash[i+1:]
	}
	if !isRevisionHash(hash) {
		return usage(MsgRevision, "got "+Quote(Clean(r.Revision))+"; pass --revision NAME-COMPONENT-HASH or --revision HASH")
	}
	return nil
}

func isRevisionHash(s string) bool {
	return len(s) == revision.HashLength && strings.Trim(s, "0123456789abcdef") == ""
}

// ReleaseHeld asks the controller to try a held revision again: it puts a request
// on the component's InferenceReplica.
func ReleaseHeld(req Release) *Action {
	followUp := func(ev *Evidence) string { return ev.retryBlocks(req.Component) }
	return &Action{
		Name:     "instance release-held",
		Title:    "HELD RELEASE PREVIEW",
		Reads:    Reads{Runtime: true, Replicas: true, Component: req.Component},
		Subject:  replicaSubject(req.Component, ""),
		Early:    []Refusal{refuseTooManyRows},
		Refusals: []Refusal{req.refuseReplicas, req.refusePending, req.refuseUnread, req.refuseBlock},
		Change: func(ev *Evidence) Change {
			return Change{Annotations: []Annotation{{Key: v1beta1.ReleaseHeldRevisionAnnotation, Value: new(req.target(ev))}}}
		},
		Preview:    req.preview,
		SecondRead: &SecondRead{Changed: msgReleaseStale, ChangedCode: ExitConflict, FailedCode: ExitConflict},
		Result: func(ev *Evidence, res *ActionResult) {
			res.Revision = req.target(ev)
			res.RevisionHash = res.Revision[len(res.Revision)-revision.HashLength:]
		},
		Words: Words{
			Accepted:      "API accepted release annotation request; controller release/convergence not observed.",
			Conflict:      "guarded held-release rejected; inspect instance retry-blocks",
			Unknown:       msgReleaseUnknown,
			Unbound:       msgReleaseUnknown,
			WriteFailed:   "write held-release result failed; request outcome may be unknown, inspect instance retry-blocks",
			PreviewFailed: msgPreviewFailed,
			FollowUp:      followUp,
		},
	}
}

func (ev *Evidence) retryBlocks(c v1beta1.ComponentType) string {
	return ev.command("instance retry-blocks", []string{"--component=" + string(c)}, nil)
}

// refuseTooManyRows refuses replicas that can't be inspected in full.
func refuseTooManyRows(ev *Evidence) *Error {
	if ev.listProblem != nil {
		return ev.listProblem
	}
	for i := range ev.Replicas {
		if e := ev.Replicas[i].undecodable; e != nil && e.Message == MsgBounds {
			return e
		}
	}
	return nil
}

// refuse is the one refusal for a block, or its replica, that isn't there as asked.
func (r Release) refuse(ev *Evidence, details ...string) *Error {
	return Refuse(MsgNotReleasable, append(details, "to see the blocks: "+ev.retryBlocks(r.Component))...)
}

// refuseReplicas demands that every replica of the service is its own, and that one
// of them is the component's.
func (r Release) refuseReplicas(ev *Evidence) *Error {
	if !slices.Contains(ev.Native, r.Component) {
		return r.refuse(ev, "component "+string(r.Component)+" isn't an OMENative component of the service")
	}
	switch n := ev.claims(r.Component); {
	case n == 0:
		return r.refuse(ev, "Missing: component "+string(r.Component)+" has no InferenceReplica "+Quote(v1beta1.ReplicaName(ev.Name, r.Component))+" yet")
	case n > 1:
		return r.refuse(ev, fmt.Sprintf("%d InferenceReplicas claim component %s of the service", n, r.Component))
	}
	for i := range ev.Replicas {
		replica := &ev.Replicas[i]
		o := replica.Object
		switch {
		case replica.foreign != nil:
			return r.refuse(ev, replica.foreign.Details...)
		case o.DeletionTimestamp != nil:
			return r.refuse(ev, "InferenceReplica "+Quote(o.Name)+" is being deleted")
		case o.Annotations[v1beta1.ControllerWriteAnnotation] != "true":
			return r.refuse(ev, "InferenceReplica "+Quote(o.Name)+": annotation "+v1beta1.ControllerWriteAnnotation+" isn't \"true\", so the manager may not own it")
		}
	}
	return nil
}

func (r Release) refusePending(ev *Evidence) *Error {
	o := ev.replica(r.Component).Object
	v, ok := o.Annotations[v1beta1.ReleaseHeldRevisionAnnotation]
	if !ok {
		return nil
	}
	return Refuse(MsgReleasePending, "InferenceReplica "+Quote(o.Name)+": annotation "+v1beta1.ReleaseHeldRevisionAnnotation+" is "+Quote(Clean(v)),
		"the controller answers and removes it in its next pass: "+ev.retryBlocks(r.Component))
}

// refuseUnread demands that all rows decode and that the replica held still while
// it was read.
func (r Release) refuseUnread(ev *Evidence) *Error {
	for i := range ev.Replicas {
		if e := ev.Replicas[i].undecodable; e != nil {
			return e
		}
	}
	return ev.movedWhileRead(r.Component)
}

// movedWhileRead compares the list with the read of the one replica.
func (ev *Evidence) movedWhileRead(c v1beta1.ComponentType) *Error {
	m := ev.replica(c).Object.ObjectMeta
	if s := ev.Selected; s == nil || s.UID != string(m.UID) || s.ResourceVersion != m.ResourceVersion {
		return Refuse(MsgStale, "InferenceReplica "+Quote(m.Name)+" changed while it was read", ev.waitForController())
	}
	return nil
}

// refuseBlock demands a current status in which every block of the component is
// valid and exactly one, a held one, is meant.
func (r Release) refuseBlock(ev *Evidence) *Error {
	for i := range ev.Replicas {
		if e := ev.lag(&ev.Replicas[i]); e != nil {
			return r.refuse(ev, e.Details[0])
		}
	}
	replica := ev.replica(r.Component).Object
	seen := map[string]bool{}
	for i := range replica.Status.RetryBlocks {
		b := &replica.Status.RetryBlocks[i]
		what := malformed(b, ev.ServerNow)
		if what == "" && seen[b.TargetRevision] {
			what = "the revision has two blocks"
		}
		if seen[b.TargetRevision] = true; what != "" {
			return r.refuse(ev, "InferenceReplica "+Quote(replica.Name)+": the retry block of "+Quote(Clean(b.TargetRevision))+" is malformed: "+what)
		}
	}
	found := r.matches(replica)
	switch {
	case len(found) == 0:
		return r.refuse(ev, "InferenceReplica "+Quote(replica.Name)+" has no retry block of revision "+Quote(r.Revision))
	case len(found) > 1:
		return r.refuse(ev, fmt.Sprintf("InferenceReplica %s has %d retry blocks whose revision ends in %s; name one in full", Quote(replica.Name), len(found), r.Revision))
	case found[0].State != v1beta1.RetryHeld:
		return r.refuse(ev, "the retry block of "+Quote(Clean(found[0].TargetRevision))+" is "+Clean(string(found[0].State))+", not Held: the controller tries it again by itself")
	}
	hash := strings.TrimPrefix(found[0].TargetRevision, replica.Name+"-")
	if found[0].TargetRevision != revision.Name(ev.Name, r.Component, hash) || !isRevisionHash(hash) {
		return r.refuse(ev, "the retry block of "+Quote(Clean(found[0].TargetRevision))+" isn't about a revision of "+Quote(replica.Name))
	}
	m := replica.ObjectMeta
	if m.UID == "" || m.ResourceVersion == "" || Unsafe(string(m.UID)) || Unsafe(m.ResourceVersion) {
		return Refuse(MsgUnsafeValue, "metadata.uid or metadata.resourceVersion of InferenceReplica "+Quote(m.Name)+" is missing or can't be shown")
	}
	return nil
}

// malformed says what contradicts itself in a block; empty when nothing does.
func malformed(b *v1beta1.RetryBlock, now time.Time) string {
	switch b.State {
	case v1beta1.RetryBackoff, v1beta1.RetryHeld, v1beta1.RetryInProgress:
	default:
		return "state " + Quote(Clean(string(b.State))) + " is unknown"
	}
	first, last, next := b.FirstFailureAt, b.LastFailureAt, b.NextRetryAt
	switch {
	case b.TargetRevision == "":
		return "targetRevision is empty"
	case b.AttemptsStarted < 1:
		return fmt.Sprintf("attemptsStarted is %d", b.AttemptsStarted)
	case next != nil && b.State != v1beta1.RetryBackoff:
		return "nextRetryAt is set and the state is " + string(b.State)
	case first != nil && first.After(now):
		return "firstFailureAt " + utc(first.Time) + " is in the future"
	case last != nil && last.After(now):
		return "lastFailureAt " + utc(last.Time) + " is in the future"
	case first != nil && last != nil && last.Time.Before(first.Time):
		return "lastFailureAt is before firstFailureAt"
	}
	return ""
}

// matches are the blocks that the flag can mean. A name is compared as a whole; a
// hash with what follows the last dash.
func (r Release) matches(o *v1beta1.InferenceReplica) []*v1beta1.RetryBlock {
	var out []*v1beta1.RetryBlock
	for i := range o.Status.RetryBlocks {
		b := &o.Status.RetryBlocks[i]
		if b.TargetRevision == r.Revision || isRevisionHash(r.Revision) && strings.HasSuffix(b.TargetRevision, "-"+r.Revision) {
			out = append(out, b)
		}
	}
	return out
}

// target is the full name of the revision; what was asked for when it has no block.
func (r Release) target(ev *Evidence) string {
	if b := r.block(ev); b != nil {
		return b.TargetRevision
	}
	if isRevisionHash(r.Revision) {
		return revision.Name(ev.Name, r.Component, r.Revision)
	}
	return r.Revision
}

func (r Release) block(ev *Evidence) *v1beta1.RetryBlock {
	if replica := ev.replica(r.Component); replica != nil {
		if found := r.matches(replica.Object); len(found) == 1 {
			return found[0]
		}
	}
	return nil
}

func (r Release) preview(ev *Evidence) ([]Row, []string) {
	parent := ev.target()
	t := replicaSubject(r.Component, "")(ev).Target
	b := r.block(ev)
	failure := "-"
	if b.LastFailureAt != nil {
		failure = utc(b.LastFailureAt.Time)
	}
	if b.Reason != "" {
		failure += " " + Clean(b.Reason)
	}
	rows := []Row{
		{"Action", "instance release-held"},
		{"Context", ev.Context},
		{"Workload NS", ev.Namespace},
		{"OME NS", ev.OMENamespace},
		{"Parent", parent.Kind + "/" + parent.Name},
		{"Parent UID", parent.UID},
		{"Target", t.Kind + "/" + t.Name},
		{"UID", t.UID},
		{rowResourceVersion, t.ResourceVersion},
		{"Dry-run", string(ev.DryRun)},
		{"Component", string(r.Component)},
		{"Revision", b.TargetRevision},
		{"Hash", b.TargetRevision[len(b.TargetRevision)-revision.HashLength:]},
		{"State", string(b.State)},
		{"Attempts", itoa(b.AttemptsStarted)},
		{"Last failure", failure},
		{"Pause state", ev.pauseState()},
		{"Set annotation", v1beta1.ReleaseHeldRevisionAnnotation},
		{"Value", Quote(b.TargetRevision)},
	}
	notes := []string{
		"Note: the controller answers by removing the block and the annotation; the revision is then tried again from its first attempt, whatever made it fail before.",
		"Note: a paused service stores the release, and its update waits for the resume.",
		"Note: the guard is on the InferenceReplica alone; the service, its other replicas and the pods may move meanwhile.",
	}
	return rows, append(notes, ev.skewNotes()...)
}

// pauseState says which pause the service asks for.
func (ev *Evidence) pauseState() string {
	switch v, ok := ev.Annotation(v1beta1.RolloutPausedAnnotation); {
	case v == v1beta1.PauseTrue:
		return "Paused"
	case v == v1beta1.PauseFreeze:
		return "Freeze"
	case ok:
		return "Not recognized"
	}
	return "Not paused"
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }
