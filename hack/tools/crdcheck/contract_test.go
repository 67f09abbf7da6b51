package crdcheck

import (
	"strings"
	"testing"
)

// The promises of docs/contract.md that the schema keeps and TestObjects has no case for.
func TestContractGroups(t *testing.T) {
	k := load(t, "inferenceservices")
	for name, tc := range map[string]struct{ manifest, want string }{
		"three components":   {service("  rollout: {groups: [{components: [router, engine, decoder]}]}\n"), ""},
		"four components":    {service("  rollout: {groups: [{components: [router, engine, decoder, router]}]}\n"), "spec.rollout.groups[0].components"},
		"a tolerance of 0":   {group("      maintainRatio: {tolerance: 0}\n"), ""},
		"a tolerance of 100": {group("      maintainRatio: {tolerance: 100}\n"), ""},
		"a tolerance below 0": {group("      maintainRatio: {tolerance: -1}\n"),
			"maintainRatio.tolerance"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := k.check(object(t, tc.manifest), nil)
			switch {
			case tc.want == "" && len(errs) > 0:
				t.Errorf("refused: %v", errs.ToAggregate())
			case tc.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.want)):
				t.Errorf("want one refusal of %s, got %v", tc.want, errs.ToAggregate())
			}
		})
	}
}
