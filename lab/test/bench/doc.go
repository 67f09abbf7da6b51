// Package bench runs the benchmark small, to prove that it counts what happens. No budget is asserted: this machine may
// be busy.
package bench
