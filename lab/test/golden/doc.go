// Package golden keeps what a person sees of the sample service at rest, in the middle of a roll, paused and after the
// roll, as kubectl and kubectl-ome print it on a lab.
//
// -update rewrites the files of testdata.
package golden
