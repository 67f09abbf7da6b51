package validate

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ome.io/ome/api/v1beta1"
)

// openFamilies are beginnings of keys whose rest is free, so that no spelling of the rest is wrong.
var openFamilies = []string{
	v1beta1.MigrationRequestAnnotationPrefix,
	"ome.io/circuit-breaker",
	"ome.io/retry",
	"ome.io/timeout",
	"ome.io/inject-",
}

// uuidTail is the end of a migration request's key.
var uuidTail = regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// changedKeys lists, sorted, the keys that the request adds or gives another value.
func changedKeys(annotations, before map[string]string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if was, ok := before[key]; !ok || was != annotations[key] {
			out = append(out, key)
		}
	}
	return out
}

// checkAnnotations judges spelling and values. A request that nobody understands does nothing,
// which for a pause is the worst that can happen.
func checkAnnotations(r *Result, annotations, before map[string]string) {
	for _, key := range changedKeys(annotations, before) {
		field := "metadata.annotations[" + key + "]"
		value := annotations[key]
		if near := meant(key); near != "" {
			r.refuse(field, "", "no such annotation; did you mean %s?", near)
			continue
		}
		switch key {
		case v1beta1.RolloutPausedAnnotation:
			if value != v1beta1.PauseTrue && value != v1beta1.PauseFreeze && value != "false" {
				r.refuse(field, "", "%q is not a pause; use %q to pause, %q to stop repairs too, or remove the annotation (or %q) to go on",
					value, v1beta1.PauseTrue, v1beta1.PauseFreeze, "false")
			}
		case v1beta1.RolloutPromoteAnnotation:
			if !isHash(value) {
				r.refuse(field, "", "%q is not a revision hash; give the canaryRevisionHash of the step that waits, lowercase letters and digits, at least %d", value, leastHash)
			}
		case v1beta1.RolloutReadyTimeoutAnnotation:
			d, err := time.ParseDuration(value)
			if err != nil {
				r.refuse(field, CodeInvalidDuration, "%q is not a duration; use a number with a unit, such as 15m", value)
			} else if d > 0 && d < time.Minute {
				r.warn(field, CodeRolloutTimeoutTooShort, "%s is under a minute, less than most models take to load", value)
			}
		case v1beta1.RevisionHistoryLimitAnnotation:
			if n, err := strconv.ParseInt(value, 10, 32); err != nil || n < 1 || value[0] == '+' {
				r.refuse(field, "", "%q is not a positive whole number", value)
			}
		}
	}
}

// checkRollback judges a rollback request: of every canary, or of the one in flight that it names.
func checkRollback(r *Result, s *v1beta1.InferenceService, before map[string]string) {
	const key = v1beta1.RolloutRollbackAnnotation
	value := s.Annotations[key]
	if !slices.Contains(changedKeys(s.Annotations, before), key) || value == "true" || value == "false" {
		return
	}
	for _, c := range s.Status.Components {
		if c.Canary != nil && value != "" && c.Canary.CanaryRevisionHash == value {
			return
		}
	}
	r.refuse("metadata.annotations["+key+"]", "",
		`%q is neither "true" nor "false" nor the hash of a canary in flight; use "true" to roll back, or remove the annotation`, value)
}

// leastHash is the shortest a revision hash is taken to be.
const leastHash = 6

func isHash(s string) bool {
	return len(s) >= leastHash && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// checkAddressee tells of a request that only a replica's controller reads.
func checkAddressee(r *Result, s *v1beta1.InferenceService, before map[string]string) {
	for _, key := range changedKeys(s.Annotations, before) {
		if key == v1beta1.ReleaseHeldRevisionAnnotation || key == v1beta1.ResetInstancesAnnotation {
			r.warn("metadata.annotations["+key+"]", "", "does nothing on an InferenceService; set it on the InferenceReplica of the component, such as %s",
				v1beta1.ReplicaName(s.Name, v1beta1.EngineComponent))
		}
	}
}

// checkComponentAnnotations judges the same spelling where the deployment mode is declared.
func checkComponentAnnotations(r *Result, s, old *v1beta1.InferenceService) {
	for _, c := range v1beta1.IsvcComponents(s) {
		annotations := s.Spec.Extension(c).Annotations
		var before map[string]string
		if old != nil {
			if e := old.Spec.Extension(c); e != nil {
				before = e.Annotations
			}
		}
		for _, key := range changedKeys(annotations, before) {
			field := component(c, ".annotations["+key+"]")
			if near := meant(key); near != "" {
				r.refuse(field, "", "no such annotation; did you mean %s?", near)
				continue
			}
			if key != v1beta1.DeploymentModeAnnotation {
				continue
			}
			switch mode := v1beta1.DeploymentMode(annotations[key]); mode {
			case v1beta1.OMENativeMode, v1beta1.RawDeploymentMode, v1beta1.MultiNodeMode, v1beta1.VirtualDeploymentMode:
			default:
				r.warn(field, "", "%q is not a deployment mode and is ignored; use OMENative or RawDeployment", mode)
			}
		}
	}
}

// meant returns the known key that an unknown one was probably meant to be, or nothing.
func meant(key string) string {
	if !strings.HasPrefix(key, v1beta1.AnnotationPrefix) {
		return ""
	}
	known := v1beta1.KnownAnnotationKeys()
	if slices.Contains(known, key) {
		return ""
	}
	for _, family := range openFamilies {
		if strings.HasPrefix(key, family) {
			return ""
		}
	}
	if at := uuidTail.FindStringIndex(key); at != nil {
		if d := distance(key[:at[0]], v1beta1.MigrationRequestAnnotationPrefix); d == 1 || d == 2 {
			return v1beta1.MigrationRequestAnnotationPrefix + "<uuid>"
		}
	}
	best, least := "", 3
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := distance(key, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance counts the insertions, deletions and substitutions that turn a into b. Keys are ASCII.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
