// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler in this process.
//
// Run returns only when all of them have ended, and with an error if one of them ended on its own. Note:
// feature gates, metrics and the log are global to the process in Kubernetes, so a process runs one control
// plane, once, and a feature gate for the API server applies to all.
package controlplane

import (
	"net"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/state"
)

// Options are the settings of the control plane.
type Options struct {
	// Dir holds data, certificates, kubeconfigs and the log. The caller holds its lock.
	Dir state.Dir
	// Listener is the listener of the API server; it must be a TCP listener on one address. Run closes it.
	Listener net.Listener
	// Durable makes etcd flush each write to the disk. Without it a crash of the machine, but not of
	// the process, may lose the newest writes.
	Durable bool
	// ControllerManager and Scheduler switch these two components on. Without a controller manager no namespace
	// gets its default service account.
	ControllerManager bool
	Scheduler         bool
	// APIServerArgs, ControllerManagerArgs and SchedulerArgs are further command line flags of the components.
	// They come after the flags of this package and override them.
	APIServerArgs         []string
	ControllerManagerArgs []string
	SchedulerArgs         []string
	// Step is called after each step of the start, from one goroutine.
	Step func(text string)
	// Ready is called once, when a pod can be created in the namespace default.
	Ready func() error
}

// stopTimeout bounds the stop of one component. Usually there are only watches, and the whole control plane
// stops in a little more than a second.
const stopTimeout = 1500 * time.Millisecond

// serviceRange is the range of service addresses; its first address is in the API server's certificate.
const serviceRange = "10.96.0.0/16"
