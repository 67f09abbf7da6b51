package sim

import (
	"maps"

	"ome.io/ome/api/v1beta1"
)

// Change edits one component of the service's spec.
func (c *Cluster) Change(kind v1beta1.ComponentType, what string, change func(*Piece)) {
	piece := c.Pieces[kind]
	change(&piece)
	if piece == c.Pieces[kind] {
		return
	}
	c.happensToAll(what, kind)
	c.Pieces[kind] = piece
	c.edited()
}

// SetImage is an edit of the service's spec.
func (c *Cluster) SetImage(kind v1beta1.ComponentType, image string) {
	if c.Pieces[kind].Image == image {
		return
	}
	c.Change(kind, "new image", func(p *Piece) { p.Image = image })
	c.logf("user: %s image %s", kind, image)
}

// SetEnv is an edit that no image patch makes.
func (c *Cluster) SetEnv(kind v1beta1.ComponentType, value string) {
	if c.Pieces[kind].Env == value {
		return
	}
	c.Change(kind, "new environment", func(p *Piece) { p.Env = value })
	c.logf("user: %s env %s", kind, value)
}

// SetStrategy changes how Instances move.
func (c *Cluster) SetStrategy(kind v1beta1.ComponentType, s v1beta1.UpdateStrategyType) {
	if c.Pieces[kind].Strategy == s {
		return
	}
	c.Change(kind, "new strategy", func(p *Piece) { p.Strategy = s })
	c.logf("user: %s strategy %s", kind, s)
}

// SetPartition keeps n Instances back from updates.
func (c *Cluster) SetPartition(kind v1beta1.ComponentType, n int32) {
	if c.Pieces[kind].Partition == n {
		return
	}
	c.Change(kind, "new partition", func(p *Piece) { p.Partition = n })
	c.logf("user: %s partition %d", kind, n)
}

// Scale edits the wanted count: in the spec, or on the replica of a component whose
// count belongs to somebody else.
func (c *Cluster) Scale(kind v1beta1.ComponentType, n int32) {
	if c.Pieces[kind].External {
		r := c.actual.replicas[kind]
		if r == nil || r.DeletionTimestamp != nil || (r.Spec.Replicas != nil && *r.Spec.Replicas == n) {
			return
		}
		c.happensToAll(scaleWord(c.Desired(kind), n), kind)
		r = r.DeepCopy()
		r.Spec.Replicas = &n
		r.Generation++
		r.ResourceVersion = c.next()
		c.actual.replicas[kind] = r
		c.dirty = true
		c.logf("scaler: %s replicas %d", kind, n)
		return
	}
	if c.Pieces[kind].Replicas == n {
		return
	}
	c.Change(kind, scaleWord(c.Pieces[kind].Replicas, n), func(p *Piece) { p.Replicas = n })
	c.logf("user: %s replicas %d", kind, n)
}

func scaleWord(from, to int32) string {
	if to > from {
		return "scale up"
	}
	return "scale down"
}

func (c *Cluster) edited() {
	c.editService(func(s *v1beta1.InferenceService) { s.Generation++ })
}

func (c *Cluster) editService(change func(*v1beta1.InferenceService)) {
	if c.actual.service == nil {
		return
	}
	s := c.actual.service.DeepCopy()
	change(s)
	s.ResourceVersion = c.next()
	c.actual.service = s
	// The template is read from the pieces, which have no lag of their own: the
	// service is seen with the edit, as the shell renders what it sees.
	c.Sync(KindService)
}

// Pause sets or removes the pause annotation.
func (c *Cluster) Pause(value string) {
	if c.actual.service == nil {
		return
	}
	word := map[string]string{"true": "pause", "freeze": "freeze"}[value]
	if word == "" {
		word = "resume"
	}
	if c.actual.service.Annotations[v1beta1.RolloutPausedAnnotation] != value {
		for _, kind := range order {
			c.happensToAll(word, kind)
		}
	}
	c.editService(func(s *v1beta1.InferenceService) {
		if value == "" {
			delete(s.Annotations, v1beta1.RolloutPausedAnnotation)
			return
		}
		s.Annotations = maps.Clone(s.Annotations)
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[v1beta1.RolloutPausedAnnotation] = value
	})
	c.logf("user: pause %q", value)
}

// Paused is true while the service carries a pause.
func (c *Cluster) Paused() bool {
	return c.actual.service != nil && c.actual.service.Annotations[v1beta1.RolloutPausedAnnotation] != ""
}

// Mail sets an annotation on a replica for the controller to consume.
func (c *Cluster) Mail(kind v1beta1.ComponentType, key, value string) {
	r := c.actual.replicas[kind]
	if r == nil || r.DeletionTimestamp != nil {
		return
	}
	r = r.DeepCopy()
	if r.Annotations == nil {
		r.Annotations = map[string]string{}
	}
	r.Annotations[key] = value
	r.ResourceVersion = c.next()
	c.actual.replicas[kind] = r
	c.dirty = true
	c.book.mailed(kind, key, value)
}

// Release asks to try a held revision again.
func (c *Cluster) Release(kind v1beta1.ComponentType, revision string) {
	c.happensToAll("release", kind)
	c.Mail(kind, v1beta1.ReleaseHeldRevisionAnnotation, revision)
	c.logf("user: release %s", kind)
}

// ReleaseAll asks so for the first held revision of each component; it is true when
// there was one.
func (c *Cluster) ReleaseAll() (some bool) {
	for _, kind := range order {
		if name := c.Held(kind); name != "" {
			c.Release(kind, name)
			some = true
		}
	}
	return some
}

// Held is the first revision of a component that used up its attempts.
func (c *Cluster) Held(kind v1beta1.ComponentType) string {
	if r := c.actual.replicas[kind]; r != nil {
		for _, b := range r.Status.RetryBlocks {
			if b.State == v1beta1.RetryHeld {
				return b.TargetRevision
			}
		}
	}
	return ""
}

// Reset asks to rebuild failed Instances.
func (c *Cluster) Reset(kind v1beta1.ComponentType, which string) {
	c.happensToAll("reset", kind)
	c.Mail(kind, v1beta1.ResetInstancesAnnotation, which)
	c.logf("user: reset %s of %s", which, kind)
}

// Break makes a component's template unrenderable, or mends it.
func (c *Cluster) Break(kind v1beta1.ComponentType, broken bool) {
	if c.Broken[kind] != broken {
		if broken {
			c.happensToAll("template breaks", kind)
		}
		c.Broken[kind] = broken
		c.dirty = true
		c.logf("%s: template broken: %v", kind, broken)
	}
}

// DeleteReplica asks for a replica's deletion, as garbage collection would.
func (c *Cluster) DeleteReplica(kind v1beta1.ComponentType) {
	r := c.actual.replicas[kind]
	if r == nil || r.DeletionTimestamp != nil {
		return
	}
	c.happensToAll("replica deleted", kind)
	r = r.DeepCopy()
	r.DeletionTimestamp = new(c.stamp())
	r.ResourceVersion = c.next()
	c.actual.replicas[kind] = r
	c.dirty = true
}

// DeleteService deletes the service and lets garbage collection follow.
func (c *Cluster) DeleteService() {
	c.actual.service = nil
	c.Sync(KindService)
	for _, kind := range order {
		c.DeleteReplica(kind)
	}
	c.logf("user: delete the service")
}
