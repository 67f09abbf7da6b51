// Package pki is the lab's certificate authority: serving and client certificates, the service account key, and the
// kubeconfig files that carry them. One lab, one authority; it never leaves the lab's directory.
package pki
