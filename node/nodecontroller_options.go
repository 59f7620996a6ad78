// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"time"

	coordclientset "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/nilcheck"
)

// ErrConflictingLeaseControllerConfiguration is returned by NewNodeController
// when the lease was configured twice.
var ErrConflictingLeaseControllerConfiguration = errors.New("node lease is configured more than once: use one of the lease options, once")

// WithNodeEnableLeaseV1 maintains a lease for the node. The lease is valid for leaseDurationSeconds (0 means DefaultLeaseDuration) and is
// renewed after a quarter of that time. It panics if client is nil or a nil pointer.
func WithNodeEnableLeaseV1(client coordclientset.LeaseInterface, leaseDurationSeconds int32) NodeControllerOpt {
	if leaseDurationSeconds == 0 {
		leaseDurationSeconds = DefaultLeaseDuration
	}
	interval := time.Duration(float64(leaseDurationSeconds) * DefaultRenewIntervalFraction * float64(time.Second))
	return WithNodeEnableLeaseV1WithRenewInterval(client, leaseDurationSeconds, interval)
}

// WithNodeEnableLeaseV1WithRenewInterval maintains a lease for the node, valid for leaseDurationSeconds and renewed every interval. The
// duration must be greater than zero, and the interval greater than zero and smaller than the duration. It panics if client is nil or a nil
// pointer. The lease has the name of the node and is in the namespace of client.
func WithNodeEnableLeaseV1WithRenewInterval(client coordclientset.LeaseInterface, leaseDurationSeconds int32, interval time.Duration) NodeControllerOpt {
	if nilcheck.Is(client) {
		panic("client is nil")
	}
	return func(n *NodeController) error {
		duration := time.Duration(leaseDurationSeconds) * time.Second
		switch {
		case n.lease != nil:
			return ErrConflictingLeaseControllerConfiguration
		case duration <= 0:
			return errdefs.InvalidInputf("lease duration is %d s: it must be greater than 0", leaseDurationSeconds)
		case interval <= 0:
			return errdefs.InvalidInputf("lease renew interval is %s: it must be greater than 0", interval)
		case interval >= duration:
			return errdefs.InvalidInputf("lease renew interval is %s: it must be smaller than the lease duration of %s", interval, duration)
		}
		n.lease = &leaseRenewer{client: client, durationSeconds: leaseDurationSeconds, interval: interval}
		return nil
	}
}

// WithNodeLeaseGuard allows only the process that holds the lease to act for the node. Only in this process does pods handle pods, and does
// the controller write the node. The next process waits until Run of the holder has ended, or the holder has not renewed for 12 seconds.
// pods must not run yet and must have the NodeName. It handles no pods unless this controller runs too. Without a lease, or without
// permission to write it, there is no guard.
func WithNodeLeaseGuard(pods *PodController) NodeControllerOpt {
	return func(n *NodeController) error {
		if pods == nil {
			return errdefs.InvalidInput("pod controller to guard is nil")
		}
		n.pods = pods
		return nil
	}
}

// WithNodeLeaseGroup makes the guard of WithNodeLeaseGuard also depend on a group of processes. This process acts only while it is
// certainly in the group. It takes the lease of a node at once when the member that holds the lease is gone. The option needs
// WithNodeLeaseGuard.
func WithNodeLeaseGroup(group LeaseGroup) NodeControllerOpt {
	return func(n *NodeController) error {
		if group == nil || group.Member() == "" {
			return errdefs.InvalidInput("lease group is nil or its member has no name")
		}
		n.group = group
		return nil
	}
}

// WithNodePingInterval sets the time between two Pings of the provider. Zero means DefaultPingInterval. Without a lease, the node status is
// also reported at this interval.
func WithNodePingInterval(d time.Duration) NodeControllerOpt {
	return func(n *NodeController) error {
		n.pingInterval = d
		return notNegative("ping interval", d)
	}
}

// WithNodePingTimeout sets how long a Ping may take before the node is not ready. The default is the ping interval. It panics if d is 0.
func WithNodePingTimeout(d time.Duration) NodeControllerOpt {
	if d == 0 {
		panic("Node ping timeout is 0")
	}
	return func(n *NodeController) error {
		n.pingTimeout = d
		return notNegative("ping timeout", d)
	}
}

// WithNodeStatusUpdateInterval sets how often the controller checks, while a lease is in use, whether an unchanged node must be reported
// again. It is reported again when its last report is five minutes old, or as old as d if d is longer. Zero means
// DefaultStatusUpdateInterval. A change is always reported at once.
func WithNodeStatusUpdateInterval(d time.Duration) NodeControllerOpt {
	return func(n *NodeController) error {
		n.statusInterval = d
		return notNegative("status update interval", d)
	}
}

// WithNodeStatusUpdateErrorHandler sets the handler for errors when a registered node cannot be updated. If the node was deleted,
// errors.IsNotFound of the API machinery is true for the error; the node is registered again regardless of the handler's result.
func WithNodeStatusUpdateErrorHandler(h ErrorHandler) NodeControllerOpt {
	return func(n *NodeController) error {
		n.statusErrorHandler = h
		return nil
	}
}

// WithNodeHealthyHook adds a function that is called whenever a Ping succeeds after a failed Ping. The function
// must return at once.
func WithNodeHealthyHook(hook func()) NodeControllerOpt {
	return func(n *NodeController) error {
		if hook == nil {
			return errdefs.InvalidInput("node healthy hook is nil")
		}
		n.healthyHooks = append(n.healthyHooks, hook)
		return nil
	}
}

func notNegative(what string, d time.Duration) error {
	if d < 0 {
		return errdefs.InvalidInput(fmt.Sprintf("%s is %s: it must not be negative", what, d))
	}
	return nil
}

// WithNodeEventRecorder records events of the node: Starting, when this process begins to act for the node; Standby, when it waits because
// another process acts for the node; NodeReady and NodeNotReady, when the Ready condition has changed. Each change has one event.
func WithNodeEventRecorder(recorder record.EventRecorder) NodeControllerOpt {
	return func(n *NodeController) error {
		if nilcheck.Is(recorder) {
			return errdefs.InvalidInput("event recorder of the node is nil")
		}
		n.recorder = recorder
		return nil
	}
}
