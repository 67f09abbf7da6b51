// Package e2e runs the product on labs of its own, under load, and holds it to what it promises: about the ways an Instance
// is updated, fails and comes back, about crashes of the manager, and about rest. The programs under test are those in
// $OME_BIN, or are built first.
package e2e
