// Package test starts real labs and looks at them from outside, as a person at a terminal would.
package test
