package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
)

// waitObjects are what one check looks at.
type waitObjects struct {
	service *v1beta1.InferenceService
	replica *v1beta1.InferenceReplica
	reads   ReplicaReads
}

func (o *waitObjects) input() *WaitInput {
	in := &WaitInput{Service: o.service, Replicas: &o.reads}
	if o.replica != nil {
		in.Replicas.Items = append(in.Replicas.Items, *o.replica)
	}
	return in
}

const (
	heldRevision = "chat-engine-5d0f21c8"
	requestID    = "7a0d1f2e-0000-4000-8000-000000000001"
)

// TestWaitReasons: each reason of each predicate has objects that earn it.
func TestWaitReasons(t *testing.T) {
	past, future := metav1.NewTime(now.Add(-time.Hour)), metav1.NewTime(now.Add(time.Hour))
	ready := WaitPredicate{Family: WaitReady, Want: "True"}
	unknown := WaitPredicate{Family: WaitReady, Want: "Unknown"}
	stable, failed, back := WaitPredicate{Family: WaitRollout, Want: "stable"}, WaitPredicate{Family: WaitRollout, Want: "failed"}, WaitPredicate{Family: WaitRollout, Want: "rolled-back"}
	move := WaitPredicate{Family: WaitMigration, RequestID: requestID}
	count := WaitPredicate{Family: WaitReplicaReady, Component: "engine", Replicas: 2}
	current := WaitPredicate{Family: WaitReplicaCount, Component: "engine", Replicas: 2}
	sync := WaitPredicate{Family: WaitRuntimeSync, RequestID: requestID}
	held := WaitPredicate{Family: WaitHeld, Component: "engine", Revision: heldRevision, ReplicaIs: "chat-engine", ReplicaUID: "r-1"}
	condition := func(status string) v1beta1.DuckCondition {
		return v1beta1.DuckCondition{Type: "Ready", Status: corev1.ConditionStatus(status), LastTransitionTime: &past}
	}
	conditions := func(list ...v1beta1.DuckCondition) func(*waitObjects) {
		return func(o *waitObjects) { o.service.Status.Conditions = list }
	}
	phase := func(p v1beta1.RolloutPhase) func(*waitObjects) {
		return func(o *waitObjects) {
			o.service.Status.Components = map[v1beta1.ComponentType]v1beta1.ComponentStatus{"engine": {RolloutPhase: p}}
		}
	}
	record := func(list ...v1beta1.MigrationStatus) func(*waitObjects) {
		return func(o *waitObjects) { o.replica.Status.Migrations = list }
	}
	moving := func(p v1beta1.MigrationPhase) v1beta1.MigrationStatus {
		return v1beta1.MigrationStatus{RequestUUID: requestID, Phase: p, StartedAt: past}
	}
	block := func(state v1beta1.RetryState) v1beta1.RetryBlock {
		return v1beta1.RetryBlock{TargetRevision: heldRevision, State: state, AttemptsStarted: 3, LastFailureAt: &past}
	}
	blocks := func(list ...v1beta1.RetryBlock) func(*waitObjects) {
		return func(o *waitObjects) { o.replica.Status.RetryBlocks = list }
	}
	mailbox := func(v string) func(*waitObjects) {
		return func(o *waitObjects) { o.replica.Annotations[v1beta1.ReleaseHeldRevisionAnnotation] = v }
	}
	synced := func(edit func(*v1beta1.InferenceService)) func(*waitObjects) {
		return func(o *waitObjects) {
			no := false
			o.service.Annotations = map[string]string{v1beta1.RuntimeSyncAnnotation: requestID}
			o.service.Status.LastRuntimeSyncToken, o.service.Status.PinnedRevisionName = requestID, "r-1"
			o.service.Spec.Runtime = &v1beta1.ServingRuntimeRef{Name: "rt", AutoSync: &no}
			edit(o.service)
		}
	}
	both := func(edits ...func(*waitObjects)) func(*waitObjects) {
		return func(o *waitObjects) {
			for _, e := range edits {
				e(o)
			}
		}
	}
	stale := func(o *waitObjects) { o.replica.Generation = 5 }
	behind := func(o *waitObjects) { o.service.Generation = 8 }
	placedElsewhere := func(o *waitObjects) { o.service.Status.Placement = &v1beta1.PlacementStatus{} }
	gone := func(o *waitObjects) { o.replica = nil }
	for _, c := range []struct {
		name      string
		predicate WaitPredicate
		edit      func(*waitObjects)
		matched   bool
		reason    string
	}{
		{"ready", ready, conditions(condition("True")), true, "ConditionMatched"},
		{"not ready", ready, conditions(condition("False")), false, "ConditionNotMatched"},
		{"unknown is asked for", unknown, conditions(condition("Unknown")), true, "ConditionMatched"},
		{"missing is not unknown", unknown, conditions(), false, "ConditionNotRecorded"},
		{"twice the same", ready, conditions(condition("True"), condition("True")), true, "ConditionMatched"},
		{"two that disagree", ready, conditions(condition("True"), condition("False")), false, "InvalidCondition"},
		{"odd status", ready, conditions(condition("Yes")), false, "InvalidCondition"},
		{"future time", ready, conditions(v1beta1.DuckCondition{Type: "Ready", Status: "True", LastTransitionTime: &future}), false, "InvalidCondition"},
		{"oversized", ready, conditions(v1beta1.DuckCondition{Type: "Ready", Status: "True", Message: strings.Repeat("x", 100<<10)}), false, "InvalidCondition"},
		{"another condition is odd", ready, conditions(condition("True"), v1beta1.DuckCondition{}), true, "ConditionMatched"},
		{"proved stale", ready, both(conditions(condition("True")), func(o *waitObjects) { o.service.Status.ObservedGeneration = 6 }), false, "ConditionNotMatched"},
		{"no stamp", ready, both(conditions(condition("True")), func(o *waitObjects) { o.service.Status.ObservedGeneration = 0 }), true, "ConditionMatched"},
		{"stamp ahead", ready, both(conditions(condition("True")), func(o *waitObjects) { o.service.Status.ObservedGeneration = 8 }), false, "InvalidCondition"},

		{"stable", stable, phase(v1beta1.RolloutStable), true, "RolloutMatched"},
		{"failed", failed, phase(v1beta1.RolloutFailed), true, "RolloutMatched"},
		{"rolled back", back, phase(v1beta1.RolloutRolledBack), true, "RolloutMatched"},
		{"rolling", stable, phase(v1beta1.RolloutPromoting), false, "RolloutNotMatched"},
		{"no rollout", stable, func(*waitObjects) {}, false, "RolloutNotRecorded"},
		{"odd phase", stable, phase("Odd"), false, "InvalidRollout"},
		{"stable and proved stale", stable, both(phase(v1beta1.RolloutStable), func(o *waitObjects) { o.service.Status.Rollout = &v1beta1.RolloutStatus{ObservedGeneration: 6} }), false, "RolloutNotMatched"},
		{"stable with a stamp", stable, both(phase(v1beta1.RolloutStable), func(o *waitObjects) { o.service.Status.Rollout = &v1beta1.RolloutStatus{ObservedGeneration: 7} }), true, "RolloutMatched"},
		{"run from the future", stable, both(phase(v1beta1.RolloutStable), func(o *waitObjects) {
			o.service.Status.Rollout = &v1beta1.RolloutStatus{ActiveRun: &v1beta1.RolloutRun{OpenedAt: future}}
		}), false, "InvalidRollout"},

		{"completed", move, record(moving(v1beta1.MigrationCompleted)), true, "MigrationMatched"},
		{"failed is terminal", move, record(moving(v1beta1.MigrationFailed)), true, "MigrationMatched"},
		{"relocated", move, record(moving(v1beta1.MigrationRelocated)), true, "MigrationMatched"},
		{"draining", move, record(moving(v1beta1.MigrationDraining)), false, "MigrationInProgress"},
		{"no record", move, record(), false, "MigrationNotRecorded"},
		{"of another request", move, record(v1beta1.MigrationStatus{RequestUUID: "x", Phase: v1beta1.MigrationCompleted}), false, "MigrationNotRecorded"},
		{"two records", move, record(moving(v1beta1.MigrationCompleted), moving(v1beta1.MigrationCompleted)), false, "InvalidMigration"},
		{"odd phase of a migration", move, record(moving("Odd")), false, "InvalidMigration"},
		{"migration from the future", move, record(v1beta1.MigrationStatus{RequestUUID: requestID, Phase: v1beta1.MigrationCompleted, StartedAt: future}), false, "InvalidMigration"},
		{"record of somebody else's replica", move, both(record(moving(v1beta1.MigrationCompleted)), func(o *waitObjects) { o.replica.OwnerReferences = nil }), false, "MigrationNotRecorded"},

		{"ready count", count, func(*waitObjects) {}, true, "ReplicaReadyMatched"},
		{"gaps don't matter", count, func(o *waitObjects) { o.replica.Status.InstanceStatuses[1].Index = 9 }, true, "ReplicaReadyMatched"},
		{"another count", count, func(o *waitObjects) { o.replica.Status.ReadyReplicas = 1 }, false, "ReplicaReadyNotMatched"},
		{"replica lags its spec", count, stale, false, "ReplicaReadyNotMatched"},
		{"replica lags the service", count, behind, false, "ReplicaReadyNotMatched"},
		{"no replica", count, gone, false, "ReplicaReadyNotRecorded"},
		{"more ready than there are", count, func(o *waitObjects) { o.replica.Status.Replicas = 1 }, false, "InvalidReplicaReadyEvidence"},
		{"rows that can't be read", count, func(o *waitObjects) { o.replica.Status.InstanceStatusEncoding = "X" }, false, "InvalidReplicaReadyEvidence"},
		{"deleting replica", count, func(o *waitObjects) { o.replica.DeletionTimestamp = &past }, false, "InvalidReplicaReadyEvidence"},
		{"stamp of the parent is ahead", count, func(o *waitObjects) { o.service.Generation = 6 }, false, "InvalidReplicaReadyEvidence"},

		{"current count", current, func(*waitObjects) {}, true, "ReplicaScaleMatched"},
		{"not there yet", current, func(o *waitObjects) { *o.replica.Spec.Replicas = 3 }, false, "ReplicaScaleNotMatched"},
		{"rows don't add up", current, func(o *waitObjects) { o.replica.Status.Replicas = 3 }, false, "InvalidReplicaScaleEvidence"},
		{"no count", current, func(o *waitObjects) { o.replica.Spec.Replicas = nil }, false, "ReplicaScaleNotRecorded"},
		{"lags the service", current, behind, false, "ReplicaScaleNotMatched"},
		{"a Deployment", current, func(o *waitObjects) {
			o.service.Status.Components = map[v1beta1.ComponentType]v1beta1.ComponentStatus{"engine": {ScaleTargetRef: &v1beta1.ScaleTargetRef{Kind: "Deployment"}}}
		}, false, "UnsupportedReplicaScaleTarget"},
		{"placed elsewhere", current, placedElsewhere, false, "UnsupportedReplicaScaleTarget"},

		{"acknowledged", sync, synced(func(*v1beta1.InferenceService) {}), true, "RuntimeSyncObserved"},
		{"pending", sync, synced(func(s *v1beta1.InferenceService) { s.Status.LastRuntimeSyncToken = "" }), false, "RuntimeSyncNotAcknowledged"},
		{"superseded", sync, synced(func(s *v1beta1.InferenceService) { s.Annotations[v1beta1.RuntimeSyncAnnotation] = "other" }), false, "RuntimeSyncNotAcknowledged"},
		{"no longer asked for", sync, synced(func(s *v1beta1.InferenceService) { s.Annotations = nil }), false, "RuntimeSyncNotAcknowledged"},
		{"no pin", sync, synced(func(s *v1beta1.InferenceService) { s.Spec.Runtime.AutoSync = nil }), false, "RuntimeSyncNotAcknowledged"},
		{"drifted", sync, synced(func(s *v1beta1.InferenceService) {
			s.Status.Conditions = []v1beta1.DuckCondition{{Type: v1beta1.ConditionRuntimeDrifted, Status: "True"}}
		}), false, "RuntimeSyncNotAcknowledged"},
		{"odd drift", sync, synced(func(s *v1beta1.InferenceService) {
			s.Status.Conditions = []v1beta1.DuckCondition{{Type: v1beta1.ConditionRuntimeDrifted, Status: "Maybe"}}
		}), false, "InvalidCondition"},
		{"never asked for", sync, func(*waitObjects) {}, false, "RuntimeSyncNotRecorded"},
		{"sync of a placed service", sync, both(synced(func(*v1beta1.InferenceService) {}), placedElsewhere), false, "UnsupportedPlacement"},

		{"no block", held, func(*waitObjects) {}, true, "Unheld"},
		{"backoff is unheld", held, blocks(block(v1beta1.RetryBackoff)), true, "Unheld"},
		{"tried again", held, blocks(block(v1beta1.RetryInProgress)), true, "Unheld"},
		{"held", held, blocks(block(v1beta1.RetryHeld)), false, "Held"},
		{"mailbox", held, mailbox(heldRevision), false, "MailboxPending"},
		{"mailbox with a hash", held, mailbox("5d0f21c8"), false, "MailboxPending"},
		{"mailbox of another", held, mailbox("00000000"), false, "MailboxSuperseded"},
		{"held replica is gone", held, gone, false, "ReplicaMissing"},
		{"held replica is deleting", held, func(o *waitObjects) { o.replica.DeletionTimestamp = &past }, false, "Deleting"},
		{"held on another cluster", held, placedElsewhere, false, "UnsupportedPlacement"},
		{"held status is stale", held, stale, false, "SourceStale"},
		{"held service moved on", held, behind, false, "SourceStale"},
		{"more than a page", held, both(gone, func(o *waitObjects) { o.reads.Truncated = true }), false, "SourceIncomplete"},
		{"somebody else's replica", held, func(o *waitObjects) { o.replica.OwnerReferences = nil }, false, "SourceInvalid"},
		{"name of another replica", WaitPredicate{Family: WaitHeld, Component: "engine", Revision: heldRevision, ReplicaIs: "x", ReplicaUID: "r-1"}, func(*waitObjects) {}, false, "SourceInvalid"},
		{"two blocks", held, blocks(block(v1beta1.RetryBackoff), block(v1beta1.RetryBackoff)), false, "InvalidRetryBlocks"},
		{"block without attempts", held, blocks(v1beta1.RetryBlock{TargetRevision: heldRevision, State: v1beta1.RetryBackoff}), false, "InvalidRetryBlocks"},
		{"unreadable rows", held, func(o *waitObjects) { o.replica.Status.InstanceStatusEncoding = "X" }, false, "InvalidStatus"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &waitObjects{service: ownService(), replica: ownReplica()}
			o.service.Status.ObservedGeneration = 7
			c.edit(o)
			w := NewWaiter(&c.predicate)
			outcome, failed := w.Check(o.input(), now)
			if matched := outcome == OutcomeMatched; matched != c.matched || failed != "" || w.last.Reason != c.reason {
				t.Errorf("outcome %q reason %s error %q, want matched=%t %s", outcome, w.last.Reason, failed, c.matched, c.reason)
			}
		})
	}
}

// TestWaitBinds: the wait ends when the service is gone or another one, and never
// matches a replica that was made anew.
func TestWaitBinds(t *testing.T) {
	predicate := WaitPredicate{Family: WaitReplicaReady, Component: "engine", Replicas: 2}
	first := func() *waitObjects {
		o := &waitObjects{service: ownService(), replica: ownReplica()}
		o.replica.Status.ReadyReplicas = 1
		return o
	}
	for _, c := range []struct {
		name   string
		edit   func(*waitObjects)
		want   string
		reason string
	}{
		{"matches later", func(o *waitObjects) { o.replica.Status.ReadyReplicas = 2 }, OutcomeMatched, "ReplicaReadyMatched"},
		{"service gone", func(o *waitObjects) { o.service = nil }, OutcomeDeleted, reasonPredicateUnmet},
		{"service deleting", func(o *waitObjects) { o.service.DeletionTimestamp = &metav1.Time{Time: now} }, OutcomeDeleted, reasonPredicateUnmet},
		{"another service", func(o *waitObjects) { o.service.UID = "s-2" }, OutcomeReplaced, reasonPredicateUnmet},
		{"another replica", func(o *waitObjects) { o.replica.UID, o.replica.Status.ReadyReplicas = "r-2", 2 }, OutcomeReplaced, "InvalidReplicaReadyEvidence"},
		{"replica gone for now", func(o *waitObjects) { o.replica = nil }, "", "ReplicaReadyNotRecorded"},
	} {
		w := NewWaiter(&predicate)
		if outcome, _ := w.Check(first().input(), now); outcome != "" {
			t.Fatalf("first check: %s", outcome)
		}
		next := first()
		c.edit(next)
		outcome, _ := w.Check(next.input(), now)
		r := w.Report("prod", "chat", outcome, time.Second, WaitCounts{}, MethodPoll, false, now)
		if outcome != c.want || r.Content.Reason != c.reason {
			t.Errorf("%s: %q %s, want %q %s", c.name, outcome, r.Content.Reason, c.want, c.reason)
		}
	}
	w := NewWaiter(&predicate)
	if outcome, _ := w.Check(&WaitInput{}, now); outcome != OutcomeNotFound {
		t.Errorf("absent at first: %q", outcome)
	}
	asked := WaitPredicate{Family: WaitHeld, Component: "engine", Revision: heldRevision, ReplicaIs: "chat-engine", ReplicaUID: "r-0"}
	w = NewWaiter(&asked)
	if outcome, _ := w.Check((&waitObjects{service: ownService(), replica: ownReplica()}).input(), now); outcome != OutcomeReplaced || w.last.Reason != "ReplicaReplaced" {
		t.Errorf("another UID than asked for: %q %s", outcome, w.last.Reason)
	}
}

// TestWaitLimits: a status with too many entries ends the wait instead of being
// judged in part.
func TestWaitLimits(t *testing.T) {
	s := ownService()
	s.Status.Conditions = make([]v1beta1.DuckCondition, maxWaitConditions+1)
	for _, c := range []struct {
		predicate WaitPredicate
		want      string
	}{{WaitPredicate{Family: WaitReady}, WaitConditionLimit}, {WaitPredicate{Family: WaitRuntimeSync}, WaitConditionLimit}} {
		if outcome, failed := NewWaiter(&c.predicate).Check(&WaitInput{Service: s}, now); outcome != "" || failed != c.want {
			t.Errorf("%s: %q %q", c.predicate.Family, outcome, failed)
		}
	}
	s = ownService()
	s.Status.RolloutCoordination = &v1beta1.RolloutCoordinationStatus{Groups: make([]v1beta1.CoordinationGroupStatus, 100)}
	if _, failed := NewWaiter(&WaitPredicate{Family: WaitRollout, Want: "stable"}).Check(&WaitInput{Service: s}, now); failed != WaitRolloutLimit {
		t.Errorf("rollout: %q", failed)
	}
}

// TestWaitGolden draws the report of each predicate, matched and not seen at all.
func TestWaitGolden(t *testing.T) {
	var b strings.Builder
	for _, p := range []WaitPredicate{
		{Family: WaitReady, Want: "True"}, {Family: WaitRollout, Want: "stable"}, {Family: WaitMigration, RequestID: requestID},
		{Family: WaitReplicaReady, Component: "engine", Replicas: 2}, {Family: WaitReplicaCount, Component: "engine", Replicas: 2},
		{Family: WaitRuntimeSync, RequestID: requestID},
		{Family: WaitHeld, Component: "engine", Revision: heldRevision, ReplicaIs: "chat-engine", ReplicaUID: "r-1"},
	} {
		o := &waitObjects{service: ownService(), replica: ownReplica()}
		o.service.Status.Conditions = []v1beta1.DuckCondition{{Type: "Ready", Status: "True"}, {}}
		o.service.Status.Components = map[v1beta1.ComponentType]v1beta1.ComponentStatus{"engine": {RolloutPhase: v1beta1.RolloutStable}}
		o.replica.Status.Migrations = []v1beta1.MigrationStatus{{RequestUUID: requestID, Phase: v1beta1.MigrationFailed}}
		w := NewWaiter(&p)
		outcome, _ := w.Check(o.input(), now)
		if outcome == "" {
			outcome = OutcomeTimedOut
		}
		fmt.Fprintf(&b, "==== %s\n", p.Requested())
		r := w.Report("prod", "chat", outcome, 1500*time.Millisecond, WaitCounts{1, 1, 0, 2, 3}, MethodWatch, false, now)
		draw(t, &b, "wide", WaitWide(r), 0)
		drawJSON(t, &b, r)
		w = NewWaiter(&p)
		draw(t, &b, "not found", WaitTable(w.Report("prod", "chat", OutcomeNotFound, 0, WaitCounts{Gets: 1}, MethodInitialGET, false, now)), 0)
	}
	compareFile(t, "testdata/wait.txt", b.String())
}

// TestWaitNeverMatchesNonsense: a match always rests on a status that says so.
func TestWaitNeverMatchesNonsense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &waitObjects{service: ownService(), replica: ownReplica()}
		st := &o.replica.Status
		o.replica.Generation = rapid.Int64Range(0, 5).Draw(t, "generation")
		st.ObservedGeneration = rapid.Int64Range(-1, 5).Draw(t, "observed")
		o.replica.Annotations[v1beta1.ParentGenerationAnnotation] = rapid.SampledFrom([]string{"", "6", "7", "8", "x"}).Draw(t, "parent")
		st.Replicas, st.ReadyReplicas = rapid.Int32Range(-1, 3).Draw(t, "replicas"), rapid.Int32Range(-1, 3).Draw(t, "ready")
		st.InstanceStatuses = st.InstanceStatuses[:rapid.IntRange(0, 2).Draw(t, "rows")]
		*o.replica.Spec.Replicas = rapid.Int32Range(-1, 3).Draw(t, "spec")
		want := rapid.Int32Range(0, 3).Draw(t, "want")
		fresh := o.replica.Generation >= 1 && st.ObservedGeneration == o.replica.Generation && o.replica.Annotations[v1beta1.ParentGenerationAnnotation] == "7"
		sane := st.Replicas >= 0 && st.ReadyReplicas >= 0 && st.ReadyReplicas <= st.Replicas
		for _, c := range []struct {
			family WaitFamily
			want   bool
		}{
			{WaitReplicaReady, fresh && sane && st.ReadyReplicas == want},
			{WaitReplicaCount, fresh && sane && st.Replicas == want && *o.replica.Spec.Replicas == want && len(st.InstanceStatuses) == int(want)},
		} {
			w := NewWaiter(&WaitPredicate{Family: c.family, Component: "engine", Replicas: want})
			in := o.input()
			outcome, _ := w.Check(in, now)
			o.reads = ReplicaReads{}
			if got := outcome == OutcomeMatched; got != c.want {
				t.Errorf("%s: %t, want %t: %+v", c.family, got, c.want, st)
			}
		}
	})
}

func TestRequestedWords(t *testing.T) {
	got := map[string]bool{}
	for _, p := range []WaitPredicate{{Family: WaitReady, Want: "False"}, {Family: WaitRollout, Want: "rolled-back"}, {Family: WaitMigration}, {Family: WaitReplicaReady}, {Family: WaitReplicaCount}, {Family: WaitRuntimeSync}, {Family: WaitHeld}} {
		got[p.Requested()] = p.Watches()
	}
	if diff := cmp.Diff(map[string]bool{"Ready=False": true, "Rollout=RolledBack": true, "Migration=Terminal": false, "Replicas=Ready": false, "Replicas=Current": false, "RuntimeSync=Acknowledged": false, "HeldRevision=Unheld": false}, got); diff != "" {
		t.Error(diff)
	}
}
