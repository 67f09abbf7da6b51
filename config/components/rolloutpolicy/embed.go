// Package rolloutpolicy holds what an administrator applies to add RolloutPolicies to an
// installation: the CRD, the webhook and the rights that the manager needs for them.
package rolloutpolicy

import "embed"

// FS holds the manifests.
//
//go:embed *.yaml
var FS embed.FS
