// Package analysis judges a canary step by its metrics. It is pure: it says
// which sample is due and what a sample means; others ask the metrics server.
//
// # One pass
//
// The state machine calls Judge in each pass in which a step with an analysis
// has its capacity, its weight recorded and StepEnteredTime set, and the service
// isn't paused. It hands in the canary's record and whatever finished samples
// the shell has of the service, and gets back
//
//   - Verdict: Hold keeps the gate closed, Pass opens it, Rollback rolls back,
//     Stalled parks the canary as AnalysisStalled;
//   - Store, which writes what must be remembered into the record. It belongs
//     into the same status write as what the verdict leads to;
//   - Due, the sample to ask for, in every pass until there is an answer;
//   - Wake, when to look again if nothing happens before;
//   - Judged, the verdict on a sample that this pass consumed, for metrics and
//     events; count it once the status write has succeeded;
//   - Why, one line for people.
//
// A promote that forces the gate simply doesn't call Judge. Call Reset on the record
// at each advance and each new start, and Restart where the step falls back to
// Pending (it clears StepEnteredTime).
//
// # Samples
//
// A sample is one instant query for each metric of the step, all at one time.
// Its ID names run, group, step, the stay in the step, the analysis as pinned,
// and the evaluation before it. The evaluation time in the record moves with
// each judged sample, so a sample counts once, however often it is handed in:
// asking twice for one ID is asking once, a sample that comes after the step was
// left fits no ID any more, one whose status write failed is judged again in the
// next pass, and one that was lost with its manager is asked for again.
//
// # What never passes
//
// No sample is judged that was taken before StepEnteredTime plus the longer of
// initialDelay and the longest range with its offset in the queries as filled
// in, since it would look at the time before the step. Doubt takes a pass away
// and never a failure: a metric with a breached value fails its sample, and
// without one it is inconclusive when a series is NaN or infinite, when a
// series that was there earlier in this stay is gone, when the server warned,
// when there is no value, or when anything went wrong. The gate opens on a passing
// sample that was taken after the bake, and on nothing else.
//
// An unanswered request is no sample. The stall clock can only be read by an
// inconclusive sample, so neither a busy sampler nor a pause makes a stall.
package analysis
