package controller

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
	"ome.io/ome/internal/core/rows"
	"ome.io/ome/internal/metrics"
)

// events are best effort. Those of a component whose status could not be written
// come with the pass that writes it.
func (p *pass) events() {
	p.counts()
	for _, e := range p.decision.Events {
		if e.Object == "" || p.committed[e.Object] {
			p.record(e, e.Object)
		}
	}
	for i := range p.decision.Components {
		d := &p.decision.Components[i]
		p.tellUndecodable(d)
		if !p.committed[d.Type] {
			continue
		}
		for _, e := range d.Events {
			p.record(e, d.Type)
		}
	}
	for _, e := range p.notes {
		p.record(e, e.Object)
	}
}

// record tells one event. With the service gone, the replica of the component it
// came from stands in.
func (p *pass) record(e core.Event, from v1beta1.ComponentType) {
	if p.recorder == nil {
		return
	}
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	replica := p.read(from).Replica
	switch {
	case replica != nil && (e.Object != "" || p.world.Service == nil):
		p.recorder.Eventf(replica, p.related(), kind, e.Reason, eventAction, "%s", note(e.Message))
	case p.world.Service != nil:
		p.recorder.Eventf(p.world.Service, nil, kind, e.Reason, eventAction, "%s", note(e.Message))
	}
}

// tellUndecodable tells once that stored rows can't be read. There is no status to
// remember it in: what can't be read must not be written over.
func (p *pass) tellUndecodable(d *core.ComponentDecision) {
	if d.CodecError == p.state.undecodable[d.Type] {
		return
	}
	p.state.undecodable[d.Type] = d.CodecError
	replica := p.read(d.Type).Replica
	if d.CodecError == "" || replica == nil {
		return
	}
	limit := p.world.Settings.InstanceStatus.MaxDecodedInstances
	_, err := rows.Decode(&replica.Status, int(limit))
	if err == nil {
		return // it is the next rows that can't be written: nothing is wrong with what is stored
	}
	way := "correct the field, or run the release of the manager that wrote it"
	if d.CodecError == string(rows.CardinalityLimit) {
		way = fmt.Sprintf("raise the setting omenativeStatus.maxDecodedInstances, now %d", limit)
	}
	p.record(core.Event{
		Object: d.Type, Warning: true, Reason: v1beta1.EventInstanceStatusDecodeFailed,
		Message: fmt.Sprintf("%s: %v; its pods and its status are left alone until the Instances can be read; %s", d.CodecError, err, way),
	}, d.Type)
}

// accountForStatus counts a status write, and tells of one that the API server found
// too large and of one that changed the encoding.
func (p *pass) accountForStatus(before *v1beta1.InferenceReplica, next *v1beta1.InferenceReplicaStatus, c v1beta1.ComponentType, err error) {
	from, to := metrics.Encoding(before.Status.InstanceStatusColumns != nil), metrics.Encoding(next.InstanceStatusColumns != nil)
	if err != nil {
		metrics.ReplicaStatusWrite(to, metrics.ResultError)
		if tooLarge(err) {
			p.tellTooLarge(c, next, err)
		}
		return
	}
	metrics.ReplicaStatusWrite(to, metrics.ResultOK)
	metrics.ReplicaStatusBytes(before.Namespace, before.Name, string(c), to, sizeOf(next))
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.state.oversized, c)
	if from != to && before.Status.Replicas > 0 {
		metrics.ReplicaStatusConverted(from, to)
		form := rows.EncodingOf(next)
		if slices.Contains(p.state.converted[c], form) {
			return // the shorter form of a few rows changes with every operation
		}
		p.state.converted[c] = append(p.state.converted[c], form)
		p.notes = append(p.notes, core.Event{
			Object: c, Reason: v1beta1.EventInstanceStatusConverted,
			Message: fmt.Sprintf("the rows of %d Instances are stored as %s now, and were as %s", next.Replicas, rows.EncodingOf(next), rows.EncodingOf(&before.Status)),
		})
	}
}

// tellTooLarge notes once that a status does not fit.
func (p *pass) tellTooLarge(c v1beta1.ComponentType, next *v1beta1.InferenceReplicaStatus, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state.oversized[c] {
		return
	}
	p.state.oversized[c] = true
	way := "ask for fewer Instances"
	if next.InstanceStatusColumns == nil {
		way += ", or set omenativeStatus.instanceStatusEncoding: " + string(v1beta1.InstanceStatusColumnarV2)
	}
	p.notes = append(p.notes, core.Event{
		Object: c, Warning: true, Reason: v1beta1.EventStatusSizeExceeded,
		Message: fmt.Sprintf("the status of %d Instances has %d bytes in encoding %s, which is too large to be stored (%s); nothing moves until it fits: %s",
			next.Replicas, sizeOf(next), rows.EncodingOf(next), cleaned(refusalText(err)), way),
	})
}
