//go:build tools

// Package pins keeps the modules of the control plane binaries in go.mod.
package pins

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubectl/pkg/cmd"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
