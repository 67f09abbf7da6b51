package rollout

import "ome.io/ome/api/v1beta1"

func (c *stepper) analyse(step *v1beta1.RolloutGroupStep) {}
