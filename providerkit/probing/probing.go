// SPDX-License-Identifier: Apache-2.0

// Package probing is the interface between a container runtime and a Prober, which probes containers. Package podruntime/probe has a
// Prober.
//
// The guarantee: a Prober does not change a Target, and a Result is the state that is known now.
//
// Note: the package has no code. The Prober needs a newer Kubernetes API than the library, whose users choose their own version.
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
	// Run probes until ctx ends, and returns when no probe is running.
	Run(ctx context.Context)
	// Ensure adds a container to the Prober, or updates it. It does not block.
	Ensure(t Target)
	// Forget removes a container from the Prober.
	Forget(containerID string)
	// Result returns the known results of a container. False means that Ensure was never called for it.
	Result(containerID string) (Result, bool)
	// Metrics returns a kubelet's metrics about probes, for the known containers.
	Metrics(ctx context.Context) ([]*dto.MetricFamily, error)
}

// Config has the dependencies and settings of a Prober.
type Config struct {
	// Exec runs a command in a container, as ExecSync of a cri.RuntimeService does: an exit code other than 0 is a
	// k8s.io/utils/exec.ExitError, a command that was ended at the timeout an error of kind DeadlineExceeded, of package context or of
	// gRPC. It must return soon after ctx ends. Required.
	Exec func(ctx context.Context, containerID string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error)
	// Changed is called when the Result of a container of that pod has changed. It must not block, and may call
	// the Prober. It may be nil.
	Changed func(pod types.UID)
	// Event records an event about the named container. It must not block. It may be nil.
	Event func(pod *corev1.Pod, container, eventType, reason, message string)
	// ExecSlack is the time beyond its timeout that Exec may take, for example to open a session; after that Exec is canceled, and the
	// probe has failed. 0 is 2 s.
	ExecSlack time.Duration
	// Tries is the number of attempts in a row for a probe that cannot be run; 0 is 3.
	Tries int
	// AtOnce is the maximum number of concurrent probes; 0 is no limit.
	AtOnce int
	// Pods is the network of pods, if the machine is not part of it. Nil: the machine reaches the addresses of pods.
	Pods PodNetwork
}

// Target is a running or ended container.
type Target struct {
	// Pod is the pod from the API server. Neither the Prober nor others may change it. Its status has the
	// earlier results of a container older than the Prober.
	Pod *corev1.Pod
	// Container is the container as it is in the spec of the pod, with an unresolved environment.
	Container *corev1.Container
	// ID is the runtime's ID of the container; it changes when the container is started again.
	ID string
	// PodIPs are the addresses of the pod. Probes without a host use the first.
	PodIPs []string
	// StartedAt is when the container was started.
	StartedAt time.Time
	// Earlier marks a container of an earlier process, with results in the status of Pod. These results hold until a probe has another
	// result. Only the first Ensure of a container uses it.
	Earlier bool
	// Running reports whether the container runs. A container that does not run is neither started nor ready.
	Running bool
	// Terminating means that the pod is stopping: liveness and startup no longer matter. A pod with a deletion timestamp is always
	// terminating.
	Terminating bool
}

// Kind is one of the three kinds of probe, as named in events.
type Kind string

// The kinds of probe.
const (
	Startup   Kind = "Startup"
	Liveness  Kind = "Liveness"
	Readiness Kind = "Readiness"
)

// Result has the known results of a container.
type Result struct {
	// Started means that the container runs and its startup probe, if any, has succeeded.
	Started bool
	// Ready means that the container is started and its readiness probe, if any, succeeds.
	Ready bool
	// Failed is the kind of the failed probe for which the container must be killed: Startup, Liveness or "". It stays set until Forget.
	Failed Kind
	// Grace is the terminationGracePeriodSeconds of the failed probe; nil leaves the period to the pod.
	Grace *int64
}

// PodNetwork is a network of pods that is separate from the machine's network.
type PodNetwork interface {
	// HasPod reports whether a pod has the address.
	HasPod(netip.Addr) bool
	// DialPod connects with a port of a pod by TCP.
	DialPod(context.Context, netip.AddrPort) (net.Conn, error)
	// CheckReachable returns an error if pods do not reach the address in the machine's network.
	CheckReachable(netip.Addr) error
}
