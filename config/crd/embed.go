// Package crd holds the generated CustomResourceDefinitions, for programs that install them without
// a checkout at hand.
package crd

import "embed"

// FS holds one YAML file for each kind.
//
//go:embed *.yaml
var FS embed.FS
