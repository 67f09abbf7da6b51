package instance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// later marks what Instances of one pod do not have.
const (
	laterGang    = "later: Instances of several pods"
	laterMigrate = "later: migrations that somebody asks for"
)

// cases says for each thing an Instance may do, in the order in which it is described,
// which case shows it: Test, or Test/case, of this package or of the one named before the
// colon. A case that is renamed or removed has to be found here again.
var cases = []struct {
	table string
	rows  [][2]string
}{
	{"ground rules", [][2]string{
		{"an operation is stored before its calls", "TestEveryPassCanBeTheFirst"},
		{"work is taken up where it was", "TestEveryPassCanBeTheFirst"},
		{"rows that cannot be read stop all work", "core:TestUnreadableRowsStopEverything"},
		{"a restart keeps the revision, an update moves it", "TestRestartPolicy/a restart keeps the revision that runs"},
		{"order of the work in a pass", "TestAdmissionOrder"},
		{"every wait has its wake", "TestEveryWaitWakes"},
	}},
	{"phases", [][2]string{
		{"none to Creating", "TestPhases/none to Creating to Ready, which clears target and operation"},
		{"Creating to Ready", "TestPhases/none to Creating to Ready, which clears target and operation"},
		{"Ready to Updating", "TestSurgeThenDrain/step by step: the new pod in the other slot, then the old one out, unrouted, deleted"},
		{"Ready to Restarting", "TestRestartPolicy/a container that restarted rebuilds its Instance, step by step"},
		{"Ready to Migrating", laterMigrate},
		{"Ready to Deleting", "TestScaleDown/a removal drains: out, unrouted, deleted, gone, and the row with it"},
		{"Ready to Pending", "TestPhases/Ready to Pending to Creating when the pod is gone, in the same incarnation"},
		{"Pending to Creating", "TestPhases/Ready to Pending to Creating when the pod is gone, in the same incarnation"},
		{"Updating, Restarting, Creating to Failed", "TestDisposition"},
		{"Failed to Ready when its pods become ready", "TestDisposition/a pod that comes up after all is taken"},
		{"Failed to Updating", "TestPhases/Failed to Updating by a new revision, whose attempt is made at once"},
		{"Failed to Creating", "TestPhases/Failed to Creating by a retry"},
		{"Failed without an operation by reset", "TestReset/: the kept operation goes, and the rebuild waits for the backoff"},
		{"Migrating ends", laterMigrate},
		{"Deleting to no row", "TestScaleDown/a removal drains: out, unrouted, deleted, gone, and the row with it"},
		{"an overdue drain fails no row", "TestDrainOverdue/a removal past its deadline is told once, counted, and goes on"},
		{"Ready is sticky", "TestPhases/Ready is sticky: a dip shows in the counts"},
	}},
	{"operations and steps", [][2]string{
		{"Create, CreatePods", "TestPhases/none to Creating to Ready, which clears target and operation"},
		{"Update, InPlace", "TestInPlace/step by step: out, unrouted, one patch, the image that runs, in, the record dropped"},
		{"Update, Drain", "TestRecreatePod/step by step: out, unrouted, deleted, gone, made again in the next incarnation"},
		{"Update, Surge and SurgeDrain", "TestSurgeThenDrain/step by step: the new pod in the other slot, then the old one out, unrouted, deleted"},
		{"Update, GangSurgeTarget and its cleanup", laterGang},
		{"Restart, Drain", "TestRestartPolicy/a container that restarted rebuilds its Instance, step by step"},
		{"Migrate, CreateSurge", laterMigrate},
		{"Delete, Drain", "TestScaleDown/a removal drains: out, unrouted, deleted, gone, and the row with it"},
	}},
	{"the clock", [][2]string{
		{"a deadline from the start", "TestClock/an attempt has the whole timeout, and its end needs no event"},
		{"no timeout anywhere", "TestClock/without a timeout there is no deadline"},
		{"no timeout anywhere, the condition", "core:TestDiagnosticConditions/InstanceReadyTimeoutUnconfigured while nobody set one, and it names where to"},
		{"parked, then the whole window", "TestParkedTimeIsNotCounted"},
		{"a changed timeout", "TestClock/a changed timeout is for operations opened later and for those without a deadline"},
		{"what serves is never failed", "TestClock/an Instance that serves is never failed"},
		{"QuotaExceeded", "TestClock/a refusal for quota parks the clock, and a clean creation grants the whole window"},
		{"QuotaExceeded after a restart of the manager", "TestClock/a manager that begins anew still knows of the refusal"},
		{"Unschedulable", "TestClock/no room parks the clock until its own grace, and room grants the whole window"},
		{"PodGroupTerminating", laterGang},
		{"NodeUnknown", "TestClock/a pod that must go first on a silent node parks the clock"},
		{"Paused", "TestClock/a surge that is held before its drain says Paused"},
		{"SourceUnrouted", "TestClock/an old pod that left rotation early is told and does not park"},
		{"a scheduling gate, no token", "TestClock/a scheduling gate parks the clock without a token, and is named"},
		{"RestartBackoff", "TestRestartPolicy/consecutive restarts wait longer each time, up to five minutes"},
	}},
	{"causes of failure", [][2]string{
		{"ImagePullBackOff", "TestFailureCauses/an image that cannot be pulled"},
		{"ErrImagePull", "TestFailureCauses/an image whose pull failed"},
		{"InvalidImageName", "TestFailureCauses/an image name that is none"},
		{"CreateContainerConfigError", "TestFailureCauses/a configuration that is not there"},
		{"CrashLoopBackOff", "TestFailureCauses/a crash loop"},
		{"CreateContainerError", "TestFailureCauses/a container that cannot be made"},
		{"RunContainerError", "TestFailureCauses/a container that cannot be run"},
		{"the deadline", "TestFailureCauses/containers that never become ready"},
		{"the deadline, gate not satisfied", "TestFailure/ready containers that never pass the gates say so"},
		{"the deadline, no pod", "TestFailureCauses/a webhook that refuses, until the deadline"},
		{"no room", "TestFailureCauses/no room"},
		{"an invalid pod", "TestFailureCauses/a spec that the API server never takes"},
		{"a namespace that is terminating", "TestFailureCauses/a namespace on its way out"},
		{"a PodGroup name that is taken", laterGang},
		{"a setting that is unset is off", "TestFailure/a grace that is not set never ends"},
		{"init containers", "TestFailure/an init container counts as well"},
		{"ended pods are made again until the deadline", "TestFailure/a pod that ended before it served is made again until the deadline, one warning each"},
		{"lastFailure survives recovery", "TestFailure/what failed is remembered after the recovery, and a clean roll does not overwrite it"},
	}},
	{"what becomes of a failure", [][2]string{
		{"Create", "TestDisposition/a failed creation is Failed without an operation and tries again"},
		{"Update of one pod", "TestDisposition/a failed update of one pod is Failed without an operation, the old pod serves, and it tries again"},
		{"Update, it ran the target already: until its pods are ready", "TestDisposition/a rebuilt pod that comes up after all is taken"},
		{"Update, lost pods are replaced", "TestDisposition/a Failed Instance that lost its serving pod gets it again while its target is held"},
		{"Update, SurgeThenDrain of several pods", laterGang},
		{"Update, other strategies of several pods", laterGang},
		{"Restart keeps operation and pods", "TestDisposition/a failed restart keeps its operation and its pods"},
		{"Restart tries again", "TestDisposition/a failed restart tries again after the backoff"},
		{"Restart, a new revision", "TestDisposition/a failed restart goes to a new revision at once"},
		{"Migrate", laterMigrate},
	}},
	{"relocation", [][2]string{
		{"a failed Create", "TestRelocation/a creation leaves the node on which it failed, and the next pod keeps off it"},
		{"a failed Update of one pod", "TestRelocation/an update of one pod leaves the node, and the old pod serves on"},
		{"not attributable only", "TestRelocation/a failure of the revision's own"},
		{"an attempt that ran on a node only", "TestRelocation/an attempt that ran nowhere"},
		{"mode Never", "core:TestPolicy/no relocation under Never"},
		{"up to the limit; unset is off", "TestRelocation/relocation turned off"},
		{"off every node left before, the cap, succeeded", "TestRelocation/every node left before is kept off, up to the last relocation"},
		{"added to the template's own affinity", "TestRelocation/it adds to what the template asks of nodes"},
		{"the record is pruned after its window", "TestRelocation/records that ended go after their window"},
		{"a record that has not ended is not", "TestRelocation/records of an Instance that is still on its way stay"},
	}},
	{"retry authority", [][2]string{
		{"none to Backoff to RetryInProgress to Held", "TestRetry/an image that cannot be pulled: backoff, attempt, backoff, attempt, held, and released"},
		{"unset: the first failure holds", "TestRetry/without a retry policy the first failure holds"},
		{"the waits", "TestRetry/the wait is capped"},
		{"others wait for the attempt", "TestRetry/one attempt at a time: the others wait for how it ends"},
		{"several in flight are one wave", "TestRetry/a wave of four failures counts once"},
		{"the scope is the revision: a new index", "TestRetry/a new index does not get around a held revision"},
		{"the scope is the revision: a rebuilt Instance", "TestRetry/nor does a rebuilt Instance, whatever goes and comes"},
		{"success clears", "TestRetry/success clears the block"},
		{"a revision that is no target is forgotten", "TestRetry/a new revision starts without the verdict on the last one, which is forgotten"},
		{"raising limits does not release", "TestRetry/raising the limits later does not release"},
		{"another strategy resets nothing", "TestRetry/another strategy does not reset the count"},
		{"not attributable: backs off, never held", "TestRetry/failures that are not the revision's own back off and never hold"},
		{"under every strategy", "TestRetryOfEachStrategy"},
	}},
	{"the release mailbox", [][2]string{
		{"a held block", "TestRelease/, tries again with all its attempts"},
		{"another state", "TestRelease/a block in another state is left, and the answer names the state"},
		{"no block", "TestRelease/no block of "},
		{"a fresh block afterwards", "TestRetry/an image that cannot be pulled: backoff, attempt, backoff, attempt, held, and released"},
		{"under a pause", "TestRelease/a pause answers it too, and what it frees waits for the resume"},
		{"idempotent", "TestRelease/a value that comes twice changes nothing twice"},
		{"its annotation goes", "core:TestReplicaMailboxes"},
	}},
	{"the reset mailbox", [][2]string{
		{"reset", "TestReset/: the kept operation goes, and the rebuild waits for the backoff"},
		{"rebuilt at the target", "TestReset/the rebuild is at the target revision"},
		{"still serving", "TestReset/an Instance that serves in spite of its failure"},
		{"owned by Update", "TestReset/an Instance that an update owns"},
		{"owned by Migrate", laterMigrate},
		{"owned by Delete", "TestReset/an Instance that is leaving"},
		{"nothing to reset", "TestReset/an Instance that is Ready and whose pod does not serve"},
		{"a phase", "TestReset/an Instance that is being made"},
		{"no such instance", "TestReset/an Instance that is not there"},
		{"all, and none is Failed", "TestReset/all, and none failed"},
		{"an invalid value", "TestReset/no value that means anything: "},
		{"the rebuild waits for a held revision", "TestReset/the rebuild waits for a held revision"},
		{"the rebuild waits for a pause", "TestReset/the rebuild waits for a pause"},
	}},
	{"pause and freeze", [][2]string{
		{"open Update", "TestPause/no update opens"},
		{"open Create", "TestPause/no creation opens"},
		{"open another attempt", "TestPause/no attempt opens after a failure"},
		{"open Migrate; migrations under way", laterMigrate},
		{"a surge of one pod under way", "TestPause/a surge stops before its drain, both pods serve"},
		{"a surge of several pods under way", laterGang},
		{"other updates under way", "TestPause/updates that took capacity out finish"},
		{"creations under way", "TestPause/creations under way finish"},
		{"restarts by policy", "TestPause/a restart that the policy asks for"},
		{"crash-loop repairs", "TestPause/a crash loop's repair"},
		{"restarts under way", "TestPause/a restart under way finishes"},
		{"missing pods under None", "TestPause/a lost pod under None"},
		{"scale-down and teardown", "TestPause/scale-down and teardown go on"},
		{"teardown of a replica", "core:TestTeardown/a pause does not stop it"},
		{"clocks", "TestPause/clocks are parked"},
		{"graces", "TestPause/graces go on counting and act at the resume"},
		{"truth of the status", "TestPause/Ready without a pod is told truthfully"},
	}},
	{"restart policy", [][2]string{
		{"None", "TestRestartPolicy/None replaces a pod that is gone, in the same incarnation, and leaves restarted containers to the kubelet"},
		{"RecreateInstanceOnPodRestart", "TestRestartPolicy/a container that restarted rebuilds its Instance, step by step"},
		{"sidecars do not count", "TestRestartPolicy/a sidecar does not count"},
		{"init containers do not count", "TestRestartPolicy/an init container does not count"},
		{"not before it was Ready", "TestRestartPolicy/a restart that ended before the Instance was Ready does not count"},
		{"a pod in phase Failed", "TestRestartPolicy/a pod in phase Failed"},
		{"fewer pods", "TestRestartPolicy/a pod that is gone"},
		{"crash-loop repair under either policy", "TestCrashLoopRepair/under "},
		{"before Ready crashes are ordinary", "TestCrashLoopRepair/before Ready a crash is what starting is like"},
		{"pacing of policy restarts: none", "TestRestartPolicy/policy restarts need no budget"},
		{"pacing of repairs: maxUnavailable", "TestCrashLoopRepair/at most the budget at one time"},
		{"pacing of repairs: updates count", "TestCrashLoopRepair/updates that keep an Instance out use the same budget"},
		{"pacing of repairs: unset is unlimited", "TestCrashLoopRepair/a budget that is not set limits nothing"},
		{"pacing of repairs: 0 blocks, told once", "TestCrashLoopRepair/a budget of zero blocks it, says so once, and names the number to change"},
		{"orphans", "TestRestartPolicy/a pod without an incarnation keeps the restart waiting"},
		{"the timeout", "TestRestartPolicy/a restart that is not done within the timeout fails"},
		{"minReadySeconds", "TestRestartPolicy/minReadySeconds belongs to a restart"},
		{"backoff between restarts", "TestRestartPolicy/consecutive restarts wait longer each time, up to five minutes"},
		{"reset of that backoff", "TestRestartPolicy/ten minutes in rotation begin the count anew"},
	}},
	{"scale-down choice and batches", [][2]string{
		{"Ready ones of the lowest indexes stay", "TestScaleDown/Ready ones of the lowest indexes stay"},
		{"then those that are not Ready, lowest first", "TestScaleDown/of those that are not Ready the lowest indexes stay"},
		{"handovers", laterMigrate},
		{"scaleUpPodBatchSize", "TestScaleUp/a batch bounds the creations of a pass and does not wait for readiness"},
		{"scaleDownPodBatchSize", "TestScaleDown/a batch counts pods on their way out, Terminating ones too, and the rest follows"},
		{"cost 1 without pods", "TestScaleDown/one without a pod costs one"},
		{"never split, one over the batch goes alone", "TestScaleDown/an Instance is never split: one over the batch goes alone"},
		{"the choice stops at what does not fit", "TestScaleDown/what does not fit stops the choice: none behind it goes first"},
		{"teardown too", "core:TestTeardown/a batch bounds it too"},
		{"unset is unbounded", "TestScaleUp/no batch, no bound"},
	}},
	{"delete, teardown, stuck pods", [][2]string{
		{"the finalizer holds until the pods are gone", "core:TestTeardown/the pods leave first"},
		{"the deadline of a teardown", "core:TestTeardown/at its deadline it goes without them, and says how many are left"},
		{"no deadline", "core:TestTeardown/without a deadline it waits, and says so"},
		{"DrainOverdue", "TestDrainOverdue/a removal past its deadline is told once, counted, and goes on"},
		{"DrainOverdue, the condition", "core:TestDiagnosticConditions/DrainOverdue while a removal is past its deadline"},
		{"force delete: both values", "TestForceDelete/off unless both values are set"},
		{"force delete: node-gone", "TestForceDelete/a node that is gone"},
		{"force delete: node-unreachable-taint", "TestForceDelete/a node with the unreachable taint"},
		{"force delete: node-not-ready", "TestForceDelete/a node that is not ready"},
		{"force delete: a Ready node is never dead", "TestForceDelete/a node that is Ready, taint or not"},
		{"force delete: the threshold", "TestForceDelete/a node that went silent not long ago is waited for, to the second"},
		{"force delete: updates", "TestForceDelete/an update that waits for a pod of a dead node forces it"},
		{"force delete: not restarts", "TestForceDelete/a restart does not"},
		{"finalizers are never stripped", "TestForceDelete/a pod that a finalizer holds is named once and never forced"},
		{"phase Unknown", "TestForceDelete/a pod of phase Unknown that must go is deleted, then forced once its node is dead"},
	}},
	{"strategies", [][2]string{
		{"SurgeThenDrain", "TestSurgeThenDrain/step by step: the new pod in the other slot, then the old one out, unrouted, deleted"},
		{"RecreatePod", "TestRecreatePod/step by step: out, unrouted, deleted, gone, made again in the next incarnation"},
		{"InPlaceIfPossible, images", "TestInPlace/step by step: out, unrouted, one patch, the image that runs, in, the record dropped"},
		{"InPlaceIfPossible, anything else", "TestInPlace/anything but images is a new pod"},
		{"InPlaceOnly, images", "TestInPlaceOnly/images are changed in place"},
		{"InPlaceOnly, anything else", "TestInPlaceOnly/anything but images is refused once for each target, and the Instances stay"},
		{"several pods", laterGang},
		{"the strategy of a running update is pinned", "TestSurgeThenDrain/the strategy of an update under way is pinned, and the next start takes the new one"},
	}},
	{"a surge of one pod", [][2]string{
		{"Surge: a live extra pod is evicted first", "TestSurgeThenDrain/a live extra pod of a failed attempt is evicted first and not charged twice"},
		{"Surge: until ready, gate, minReadySeconds", "TestSurgeThenDrain/minReadySeconds counts from Ready, before the old pod leaves"},
		{"gates may hold before the drain", "TestPause/a surge stops before its drain, both pods serve"},
		{"SurgeDrain: gate, unrouted, delete", "TestSurgeThenDrain/step by step: the new pod in the other slot, then the old one out, unrouted, deleted"},
		{"finish: the drained pod keeps its slot", "TestMaxSurge/a Terminating pod counts until its grace is over, and the wake is then"},
		{"never on available alone", "TestSurgeThenDrain/a listed pod is not enough at minReadySeconds 0: it must serve and be reached"},
		{"a failed new pod", "TestSurgeThenDrain/a live extra pod holds its slot against the others"},
	}},
	{"drain", [][2]string{
		{"gate, unrouted, delete, the name is free", "TestRecreatePod/step by step: out, unrouted, deleted, gone, made again in the next incarnation"},
		{"still Ready is still routed", "TestDecide/a pod that is out of rotation but still Ready is not deleted: a slice may yet list it"},
	}},
	{"in place", [][2]string{
		{"the order of steps", "TestInPlace/step by step: out, unrouted, one patch, the image that runs, in, the record dropped"},
		{"kept in rotation", "TestInPlace/kept in rotation, its gate never turns"},
		{"only images are eligible", "TestInPlace/labels and annotations of the template are a new pod as well"},
		{"restarted on the new image", "TestMoved"},
		{"minReadySeconds", "TestInPlace/minReadySeconds counts from the return to rotation"},
		{"name, node and UID survive", "TestInPlace/step by step: out, unrouted, one patch, the image that runs, in, the record dropped"},
		{"the old container ready is not done", "TestMoved/the old container, though it is ready"},
		{"the same digest", "TestMoved/another tag of the same digest in a new container"},
		{"reverted after the patch", "TestInPlace/reverted after the patch, before the kubelet saw it, the old image is asked for again and the old container runs on"},
	}},
	{"admission of an update", [][2]string{
		{"1 pause", "TestAdmissionOrder/a pause before everything"},
		{"2 gates", "TestAdmissionOrder/then the gates of the rollout"},
		{"3 partition", "TestAdmissionOrder/then the partition, which is no hold"},
		{"4 retry authority", "TestAdmissionOrder/then retry authority"},
		{"5 budget", "TestAdmissionOrder/then the budget"},
		{"6 work that needs more places under placement", "later: placement over several clusters"},
		{"order of candidates", "TestAdmissionOrder/candidates: Failed ones, broken ones, those that do not serve, then the highest index"},
		{"maxSurge, number and percentage", "core:TestPolicy/a percentage of the count, rounded upward"},
		{"maxSurge, slots", "TestMaxSurge/slots are pods beyond one for each Instance, and never more than the budget"},
		{"maxSurge, Terminating pods", "TestMaxSurge/a Terminating pod counts until its grace is over, and the wake is then"},
		{"maxSurge, live extras", "TestMaxSurge/the live extra pod of a failed attempt counts, once, and is named"},
		{"maxUnavailable, number and percentage", "core:TestPolicy/a percentage of the count, rounded upward"},
		{"maxUnavailable, what does not serve counts", "TestMaxUnavailable/an Instance that does not serve by itself counts, and is named"},
		{"partition is a count", "TestPartition/it counts, and does not compare: gaps in the indexes deadlock nothing"},
		{"partition, those that move are passed over", "TestPartition/one that moves already goes on, and another is kept instead"},
		{"pacing replaces the partition", "core:TestPolicy/a canary's partition goes before it"},
		{"a group's ceiling caps", "core:TestPolicy/a group's ceiling caps the surge"},
		{"unset is no cap", "TestRecreatePod/a budget that is not set takes everything down"},
		{"zero moves nothing, and is named: maxSurge", "TestMaxSurge/a budget of zero names the number to change and the strategy that would work"},
		{"zero moves nothing, and is named: maxUnavailable", "TestMaxUnavailable/zero under "},
		{"Staged", "core:TestReadyReasons/held at a partition"},
	}},
	{"revision and hash", [][2]string{
		{"any runner's template", "revision:TestWhatChangesTheHash/worker only"},
		{"the runner set", "revision:TestWhatChangesTheHash/runner added"},
		{"sizes", "revision:TestWhatChangesTheHash/worker size"},
		{"annotations and labels of the component", "revision:TestWhatChangesTheHash/component annotation"},
		{"the pairing token", "revision:TestWhatChangesTheHash/pairing token"},
		{"the topology key of several pods", "revision:TestWhatChangesTheHash/topology key of a gang"},
		{"the grace period of the template", "revision:TestWhatChangesTheHash/grace period"},
		{"a runtime, model or accelerator that alters it", "revision:TestWhatChangesTheHash/runtime's probe"},
		{"not counts, lifecycle, spread, autoscaler", "core:TestOnlyTheseFieldsMakeARevision"},
		{"not annotations of the service alone", "revision:TestWhatChangesTheHash/excluded annotation"},
		{"not the queue label", "revision:TestWhatChangesTheHash/queue label"},
		{"collisions", "revision:TestResolveCollision"},
		{"the same data is the same revision", "revision:TestResolveCreatesThenReuses"},
		{"golden vectors", "revision:TestGoldenHashes"},
		{"currentRevision", "core:TestCurrentRevision"},
		{"retention", "core:TestRetention"},
	}},
	{"conditions and holds of a replica", [][2]string{
		{"the template's reasons", "core:TestReadyReasons/nothing can be rendered"},
		{"InstanceFailed", "core:TestReadyReasons/an Instance failed"},
		{"Staged", "core:TestReadyReasons/held at a partition"},
		{"RolloutInProgress", "core:TestReadyReasons/a rollout"},
		{"NoReplicas", "core:TestReadyReasons/no Instance is desired"},
		{"AllInstancesReady", "core:TestReadyReasons/all are ready"},
		{"MinimumAvailable", "core:TestReadyReasons/enough serve"},
		{"ReplicaCountMismatch", "core:TestReadyReasons/too few serve"},
		{"RolloutStalled", "core:TestDiagnosticConditions/RolloutStalled while an Instance that is not on the target failed"},
		{"DrainOverdue", "core:TestDiagnosticConditions/DrainOverdue while a removal is past its deadline"},
		{"InstanceReadyTimeoutUnconfigured", "core:TestDiagnosticConditions/InstanceReadyTimeoutUnconfigured while nobody set one, and it names where to"},
		{"GangSchedulingUnavailable", laterGang},
		{"MigrationPolicyUnconfigured", laterMigrate},
		{"since when a hold stands", "core:TestRolloutHold/the same gate and target, though the text changed"},
		{"a hold goes", "core:TestRolloutHold/it goes when nothing rolls"},
		{"the service shows it", "core:TestRolloutHold/it is the service's too, word for word"},
		{"Ready, Serving, Available", "TestCounts/a pod is Ready by its containers, serving with the gate, available after minReadySeconds"},
	}},
	{"what others suffered: stalls", [][2]string{
		{"small counts and zero budgets", "TestSmallCountsEndOrSayWhy"},
		{"the old revision is the broken one", "TestABrokenOldRevisionGivesWay"},
		{"the old revision is the broken one, and restarts", "TestCrashLoopRepair/a new revision does not wait for the backoff of the old one's restarts"},
		{"a deadline that only fires on an event", "TestEveryWaitWakes"},
		{"no spare GPU", "TestClock/no room parks the clock until its own grace, and room grants the whole window"},
		{"a refusal is named, of the pod it is about", "TestTheHoldNamesTheCause/of two pods to come, the one that was refused"},
		{"behind a budget, what holds it up", "TestTheHoldNamesTheCause/behind an exhausted budget, the pod that holds it up"},
		{"a gate from outside", "TestClock/a scheduling gate parks the clock without a token, and is named"},
		{"waiting for a crashing pod to be idle", "TestACrashingPodIsNotBusy"},
		{"gaps in the indexes", "TestPartition/it counts, and does not compare: gaps in the indexes deadlock nothing"},
	}},
	{"what others suffered: reverts", [][2]string{
		{"A to B to A at every step", "TestRevertAtEveryStep"},
		{"A to B to A in place", "TestInPlace/reverted after the new image ran, the old one runs again in the same pod"},
		{"another target at every step", "TestRetargetAtEveryStep"},
		{"a new revision inherits a verdict", "TestRetry/a new revision starts without the verdict on the last one, which is forgotten"},
		{"back from every point of a failure", "TestRevertOfABadRevision"},
		{"what is returned to serves before anything drains", "TestRevertAtEveryStep"},
		{"a new revision after a revert", "TestANewRevisionAfterARevert"},
		{"completion judged by old pods", "TestSurgeThenDrain/completion counts pods of the target only"},
	}},
	{"what others suffered: state", [][2]string{
		{"decisions kept in memory", "TestEveryPassCanBeTheFirst"},
		{"a library changes the hash", "revision:TestGoldenHashes"},
		{"a condition that another write overwrote", "core:TestDiagnosticConditions/a condition of another kind stays"},
		{"status outgrows the store: rows", "rows:TestTwentyThousandRowsStaySmall"},
		{"status outgrows the store: messages", "TestFailure/a long message is cut"},
		{"status outgrows the store: notes", "TestRowsStaySmall"},
	}},
	{"what others suffered: counts and budgets", [][2]string{
		{"a scale change in the middle of a roll", "TestScaleUp/a scale-up in the middle of a roll starts at the target"},
		{"a scale-down in the middle of a roll", "TestScaleDown/the scale-down of a roll leaves no pod behind"},
		{"a count is no part of a revision", "core:TestOnlyTheseFieldsMakeARevision"},
		{"old pods trusted blindly", "TestPreemptionCountsAgainstTheBudget"},
	}},
	{"what others suffered: in place, drain, readiness", [][2]string{
		{"done while the old image runs", "TestMoved/the old container, though it is ready"},
		{"our own gate, from creation, on every strategy", "TestPodOfAnInstance/on every strategy and at every creation"},
		{"Ready is the kubelet's alone", "TestPodOfAnInstance/our gate is the only condition that is written"},
		{"minReadySeconds, surge", "TestSurgeThenDrain/minReadySeconds counts from Ready, before the old pod leaves"},
		{"minReadySeconds, rebuild", "TestRecreatePod/nor with minReadySeconds"},
		{"minReadySeconds, in place", "TestInPlace/minReadySeconds counts from the return to rotation"},
	}},
}

// Every case that is named exists. A name made at run time is found by its constant part.
func TestEveryNamedCaseExists(t *testing.T) {
	known := map[string]map[string][]string{}
	for name, dir := range map[string]string{"": ".", "core": "..", "revision": "../revision", "rows": "../rows"} {
		known[name] = testsOf(t, dir)
	}
	rows, seen := 0, map[string]bool{}
	for _, table := range cases {
		for _, row := range table.rows {
			what, where := row[0], row[1]
			if key := table.table + ": " + what; seen[key] {
				t.Errorf("%s is there twice", key)
			} else {
				seen[key] = true
			}
			rows++
			if strings.HasPrefix(where, "later: ") {
				continue
			}
			pkg, name := "", where
			if p, rest, ok := strings.Cut(where, ":"); ok && known[p] != nil {
				pkg, name = p, rest
			}
			test, sub, named := strings.Cut(name, "/")
			literals, ok := known[pkg][test]
			if !ok {
				t.Errorf("%s, %s: there is no %s", table.table, what, where)
				continue
			}
			found := !named
			for _, l := range literals {
				found = found || l == sub
			}
			if !found {
				t.Errorf("%s, %s: %s has no case %q", table.table, what, test, sub)
			}
		}
	}
	if rows < 200 {
		t.Errorf("%d rows", rows)
	}
}

// testsOf are the tests of a directory with the texts in them.
func testsOf(t *testing.T, dir string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", dir, err)
	}
	out := map[string][]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			texts := []string{}
			ast.Inspect(f, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					if text, err := strconv.Unquote(l.Value); err == nil {
						texts = append(texts, text)
					}
				}
				return true
			})
			out[f.Name.Name] = texts
		}
	}
	return out
}
