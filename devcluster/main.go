// SPDX-License-Identifier: Apache-2.0

// Command devcluster is a Kubernetes control plane for development and tests in one binary: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler and kubectl.
//
// Everything listens on the loopback interface only, with certificates and RBAC as in a real
// cluster. Called as "kubectl", through a link of that name, it is kubectl and nothing else.
package main

import (
	"os"
	"path/filepath"
	_ "time/tzdata" // CronJobs name time zones, and this machine may have none

	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/command"
)

func main() {
	if filepath.Base(os.Args[0]) == "kubectl" {
		command.Kubectl(os.Args)
		return
	}
	os.Exit(command.Main())
}
