// Package e2e runs the product on labs of its own and holds it to what it promises about crashes and about rest. The
// programs under test are those in $OME_BIN, or are built first.
package e2e
