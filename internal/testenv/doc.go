// Package testenv starts a real API server for tests, from the binaries that the
// lab builds. A test that needs one fails when they are missing; it never skips.
package testenv
