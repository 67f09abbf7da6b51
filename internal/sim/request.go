package sim

import (
	"maps"

	"ome.io/ome/api/v1beta1"
)

// Annotate puts a request on the service, as a command does.
func (c *Cluster) Annotate(key, value string) {
	c.annotate(key, value)
	c.logf("user: %s=%s", key, value)
}

func (c *Cluster) annotate(key, value string) {
	c.editService(func(s *v1beta1.InferenceService) {
		s.Annotations = maps.Clone(s.Annotations)
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[key] = value
	})
}
