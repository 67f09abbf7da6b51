// Package prometheus has a real Prometheus scrape the servers of a lab's pods.
//
// The program is built from its module by package binaries; the module in the directory server pins it. It finds the
// pods in a file that is written anew whenever one of them changes, and gives their series the labels namespace,
// inferenceservice, component, revision_hash and pod.
package prometheus
