package guarded

import (
	"strings"
	"time"
)

// DryRun says how far an action goes.
type DryRun string

const (
	// DryRunNone sends the patch for real.
	DryRunNone DryRun = "none"
	// DryRunClient stops before the patch.
	DryRunClient DryRun = "client"
	// DryRunServer has the API server run tests and admission and store nothing.
	DryRunServer DryRun = "server"
)

// Output is a result format.
type Output string

// The formats every action takes. Wide prints the table unless an action adds rows.
const (
	OutputTable Output = "table"
	OutputWide  Output = "wide"
	OutputJSON  Output = "json"
	OutputYAML  Output = "yaml"
)

// Time limits of an action.
const (
	// DefaultBudget bounds the whole action, the prompt included.
	DefaultBudget = 45 * time.Second
	// DefaultRequestTimeout bounds one API request.
	DefaultRequestTimeout = 10 * time.Second
)

// Options are the flags that every action takes.
type Options struct {
	DryRun       DryRun
	Output       Output
	Yes          bool
	OMENamespace string
	// RetryOnStatusChange reads again after the confirmation and accepts a newer
	// object when nothing that was checked or shown differs.
	RetryOnStatusChange bool
}

// ParseOutput reads the value of -o.
func ParseOutput(s string) (Output, error) {
	switch o := Output(s); o {
	case OutputTable, OutputWide, OutputJSON, OutputYAML:
		return o, nil
	}
	return "", usage("output must be table, wide, json or yaml", "got "+Quote(s))
}

// ParseDryRun reads the value of --dry-run.
func ParseDryRun(s string) (DryRun, error) {
	switch d := DryRun(s); d {
	case DryRunNone, DryRunClient, DryRunServer:
		return d, nil
	}
	return "", usage("dry-run must be none, client or server", "got "+Quote(s))
}

// ValidateName checks the one argument of an action: a DNS-1123 subdomain that
// is safe to repeat on a screen.
func ValidateName(name string) error {
	if !isSubdomain(name) || looksLikeCredential(name) {
		return usage(MsgName,
			"a name has lowercase letters, digits, '-' and '.', and starts and ends with a letter or digit")
	}
	return nil
}

// ValidateNamespace checks a resolved workload namespace.
func ValidateNamespace(ns string) error {
	if !isLabel(ns) || looksLikeCredential(ns) {
		return usage(MsgNamespaceInvalid,
			"a namespace has lowercase letters, digits and '-', at most 63; pass -n NAMESPACE or fix the kubeconfig context")
	}
	return nil
}

// ValidateContext checks the kubeconfig context that previews and follow-up
// commands name. An action never runs against a cluster it can't name.
func ValidateContext(name string) error {
	if name == "" || Unsafe(name) {
		return usage(MsgContext,
			"pass --context NAME, or choose one with: kubectl config use-context NAME")
	}
	return nil
}

func isLabel(s string) bool {
	return len(s) >= 1 && len(s) <= 63 && isDNS(s)
}

func isSubdomain(s string) bool {
	if len(s) < 1 || len(s) > 253 {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || !isDNS(part) {
			return false
		}
	}
	return true
}

func isDNS(s string) bool {
	for i, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case c == '-' && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return true
}
