package analysis

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"ome.io/ome/api/v1beta1"
)

// identify names the sample that comes next.
func identify(in Input, entered time.Time) ID {
	id := ID{Service: in.Service, Run: in.Run, Group: in.Group, Step: in.Step, Entered: entered.Unix(), Plan: planDigest(in)}
	if last := in.Record.LastEvaluationTime; last != nil {
		id.After = last.Unix()
	}
	return id
}

// planDigest covers what a sample depends on, so that one that was asked for under an older plan
// fits no more.
func planDigest(in Input) string {
	raw, err := json.Marshal(struct {
		Analysis  *v1beta1.RolloutAnalysis
		Source    *v1beta1.AnalysisPrometheus
		Variables Variables
	}{in.Canary.Steps[in.Step].Analysis, in.Canary.Prometheus, in.Variables})
	if err != nil {
		return "unreadable" // no value of these types is
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
