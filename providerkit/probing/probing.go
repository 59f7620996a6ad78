// SPDX-License-Identifier: Apache-2.0

// Package probing has what is said between those who run containers and a Prober, which asks containers how they are by the probes of their pod. Package
// podruntime/probe has a Prober.
//
// The guarantee: a Target that is given is not changed, and a Result says what is known now.
//
// What surprises: there is no code here. The Prober stands on a newer Kubernetes API than the library, whose users choose their own.
package probing

import (
	"context"
	"net"
	"net/netip"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Prober probes containers while Run does.
type Prober interface {
	// Run probes until ctx ends, and returns when no probe is under way any more.
	Run(ctx context.Context)
	// Ensure makes the Prober know of a container, or of what has changed about it. It does not block.
	Ensure(t Target)
	// Forget drops all that is known of a container.
	Forget(containerID string)
	// Result returns what is known of a container. False is a container that was never ensured.
	Result(containerID string) (Result, bool)
	// Metrics returns the metrics of a kubelet about the probes of the containers that are known.
	Metrics(ctx context.Context) ([]*dto.MetricFamily, error)
}

// Config is what a Prober is made from.
type Config struct {
	// Exec runs a command in a container, as ExecSync of a cri.RuntimeService does: an exit code other than 0 is a
	// k8s.io/utils/exec.ExitError, a command that was ended at the timeout an error of kind
	// DeadlineExceeded, of package context or of gRPC. It returns soon after ctx ends. Required.
	Exec func(ctx context.Context, containerID string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error)
	// Changed is called when the Result of a container of that pod has changed. It must not block, and may
	// call the Prober. Nil is no function.
	Changed func(pod types.UID)
	// Event records an event about a container, whose name is given; it must not block. Nil
	// is no function.
	Event func(pod *corev1.Pod, container, eventType, reason, message string)
	// ExecSlack is how much longer than its timeout Exec may take, as where it opens a session first; it is ended then, and the probe has failed. 0 is 2 s.
	ExecSlack time.Duration
	// Tries is how often a probe is made in a row that cannot be made; 0 is 3.
	Tries int
	// AtOnce is how many probes may be under way; 0 is as many as are due.
	AtOnce int
	// Pods is the network of pods, where the machine is not in it. Nil: the machine reaches the addresses of pods.
	Pods PodNetwork
}

// Target is a container that runs or has run.
type Target struct {
	// Pod is the pod as the API server has it; it is not changed and must not be changed by others. Its status says
	// what was known of a container that is older than the Prober.
	Pod *corev1.Pod
	// Container is the container as it is in the spec of the pod, with environment unresolved.
	Container *corev1.Container
	// ID is that of the container at the runtime; a container that was started again has another one.
	ID string
	// PodIPs are the addresses of the pod. The first is asked where the probe names no host.
	PodIPs []string
	// StartedAt is when the container was started.
	StartedAt time.Time
	// Earlier says that it is in the status of Pod as another process told it, which holds until a probe says otherwise. It is looked at when the container is new.
	Earlier bool
	// Running says whether it runs. One that does not is at once neither started nor ready.
	Running bool
	// Terminating says that the pod is being stopped: its liveness and startup do not matter any more. A
	// pod with a deletion timestamp is terminating in any case.
	Terminating bool
}

// Kind is one of the three kinds of probe, as the texts of events have it.
type Kind string

// The kinds of probe.
const (
	Startup   Kind = "Startup"
	Liveness  Kind = "Liveness"
	Readiness Kind = "Readiness"
)

// Result is what is known of a container.
type Result struct {
	// Started says that it runs and its startup probe, if it has one, has succeeded.
	Started bool
	// Ready says that it is started and its readiness probe, if it has one, succeeds.
	Ready bool
	// Failed is the probe because of which the container is to be killed: Startup, Liveness or "". It stays until the
	// container is forgotten.
	Failed Kind
	// Grace is the terminationGracePeriodSeconds of the probe that failed; nil leaves it to the pod.
	Grace *int64
}

// PodNetwork is a network of pods that the machine itself is not in.
type PodNetwork interface {
	// HasPod tells whether the address is that of a pod.
	HasPod(netip.Addr) bool
	// DialPod connects with a port of a pod by TCP.
	DialPod(context.Context, netip.AddrPort) (net.Conn, error)
	// CheckReachable returns why pods do not reach that address of the machine's network, nil if they do.
	CheckReachable(netip.Addr) error
}
