// Package binaries finds the programs of the control plane, and builds from Go modules what it does not find.
package binaries
