// Package cli is the command tree of kubectl-ome: it parses flags, calls view
// or guarded, and prints. It decides nothing about a cluster.
package cli
