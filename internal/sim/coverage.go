package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

// Cell is one thing that happened to an Instance in one phase under one strategy.
type Cell struct {
	Phase    v1beta1.InstancePhase
	Event    string
	Strategy v1beta1.UpdateStrategyType
}

// Coverage counts cells; several clusters may share one.
type Coverage struct {
	mu    sync.Mutex
	count map[Cell]int
}

// NewCoverage returns an empty count.
func NewCoverage() *Coverage { return &Coverage{count: map[Cell]int{}} }

func (v *Coverage) add(cell Cell) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.count[cell]++
}

// Count is how often the cell was reached.
func (v *Coverage) Count(cell Cell) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.count[cell]
}

// Events lists what was seen to happen.
func (v *Coverage) Events() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	seen := map[string]bool{}
	var out []string
	for cell := range v.count {
		if !seen[cell.Event] {
			seen[cell.Event] = true
			out = append(out, cell.Event)
		}
	}
	slices.Sort(out)
	return out
}

// Phases and Strategies span the table.
var (
	Phases = []v1beta1.InstancePhase{
		v1beta1.InstancePending, v1beta1.InstanceCreating, v1beta1.InstanceReady, v1beta1.InstanceUpdating,
		v1beta1.InstanceRestarting, v1beta1.InstanceFailed, v1beta1.InstanceDeleting,
	}
	Strategies = []v1beta1.UpdateStrategyType{
		v1beta1.SurgeThenDrain, v1beta1.RecreatePod, v1beta1.InPlaceIfPossible, v1beta1.InPlaceOnly,
	}
)

// Table prints the counts of the given events, one line for each phase and event,
// one column for each strategy.
func (v *Coverage) Table(events []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-11s %-22s", "PHASE", "EVENT")
	for _, s := range Strategies {
		fmt.Fprintf(&b, " %17s", s)
	}
	for _, phase := range Phases {
		for _, event := range slices.SortedFunc(slices.Values(events), cmp.Compare) {
			fmt.Fprintf(&b, "\n%-11s %-22s", phase, event)
			for _, s := range Strategies {
				fmt.Fprintf(&b, " %17d", v.Count(Cell{phase, event, s}))
			}
		}
	}
	return b.String()
}

// happens counts an event of one pod for the Instance that has it.
func (c *Cluster) happens(event string, p *corev1.Pod) {
	if c.Coverage == nil || p == nil {
		return
	}
	kind := v1beta1.ComponentType(p.Labels[v1beta1.ComponentLabel])
	if !owned(p, c.actual.replicas[kind]) {
		return
	}
	for _, row := range c.Rows(kind) {
		if row.Index == index(p) {
			c.Coverage.add(Cell{row.Phase, event, c.Pieces[kind].strategy()})
		}
	}
}

// happensToAll counts an event of a component for each of its Instances.
func (c *Cluster) happensToAll(event string, kind v1beta1.ComponentType) {
	if c.Coverage == nil {
		return
	}
	for _, row := range c.Rows(kind) {
		c.Coverage.add(Cell{row.Phase, event, c.Pieces[kind].strategy()})
	}
}
