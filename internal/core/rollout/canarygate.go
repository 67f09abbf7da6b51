package rollout

import (
	"fmt"
	"time"

	"ome.io/ome/api/v1beta1"
)

// Gate is what a canary step waits for once its capacity is ready.
type Gate string

const (
	GateImmediate Gate = "Immediate"
	GateTimed     Gate = "Timed"
	GateManual    Gate = "Manual"
	GateAnalysis  Gate = "Analysis"
)

// GateOf is the gate of a step. A pause without a duration beside an analysis means nothing.
func GateOf(step *v1beta1.RolloutGroupStep) Gate {
	switch {
	case step.Analysis != nil:
		return GateAnalysis
	case step.Pause == nil:
		return GateImmediate
	case step.Pause.Duration == nil:
		return GateManual
	case step.Pause.Duration.Duration <= 0:
		return GateImmediate
	}
	return GateTimed
}

func pauseOf(step *v1beta1.RolloutGroupStep) time.Duration {
	if step.Pause == nil || step.Pause.Duration == nil {
		return 0
	}
	return step.Pause.Duration.Duration
}

// rested is true unless the canary only waits out the delay before it completes. A promote
// that comes meanwhile stays until then: spent early, it would be wanted a second time.
func (c *stepper) rested() bool {
	due := c.st.StepEnteredTime.Add(c.delay())
	if !c.last() || !c.in.Now.Before(due) {
		return true
	}
	c.wake(due)
	return false
}

// gate looks at the step's gate; its capacity is ready and its weight recorded.
func (c *stepper) gate(step *v1beta1.RolloutGroupStep) {
	c.phase = v1beta1.RolloutPaused
	if c.last() {
		c.phase = v1beta1.RolloutPromoting
	}
	switch GateOf(step) {
	case GateImmediate:
		c.advance("its capacity is ready")
	case GateTimed:
		if due := c.st.StepEnteredTime.Add(pauseOf(step)); c.in.Now.Before(due) {
			c.wake(due)
			return
		}
		c.advance(fmt.Sprintf("%s have passed", pauseOf(step)))
	case GateManual:
		if c.promoted() && c.rested() {
			c.usePromote()
			c.advance("it was promoted")
		}
	case GateAnalysis:
		switch {
		case !c.promoted():
			c.analyse(step)
		case c.rested():
			c.usePromote()
			c.advance("a promote overrode its analysis")
		}
	}
}
