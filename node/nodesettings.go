// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	v1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

const (
	// DefaultPingInterval is the time between two Pings of the provider.
	DefaultPingInterval = 10 * time.Second

	// DefaultStatusUpdateInterval is the time between two checks whether the node object must be reported again
	// while a lease is in use. An unchanged node is reported every five minutes.
	DefaultStatusUpdateInterval = 1 * time.Minute

	// DefaultLeaseDuration is the validity of a node lease in seconds.
	DefaultLeaseDuration = 40

	// DefaultRenewIntervalFraction is the fraction of the lease duration after which the lease is renewed.
	DefaultRenewIntervalFraction = 0.25
)

// ErrorHandler handles an error. It returns nil if it has handled the error; the failed action is then retried once at once. Otherwise it
// returns the error that counts as the outcome.
type ErrorHandler func(context.Context, error) error

// nodeSettings are the settings of NewNodeController and its options, and the settings that other parts add. They are then constant.
type nodeSettings struct {
	node               *corev1.Node
	nodes              v1.NodeInterface
	leased             bool // a lease shows that the process is alive
	pingInterval       time.Duration
	statusInterval     time.Duration
	statusErrorHandler ErrorHandler
	shutdown           *latest[struct{}] // safe for concurrent use
	conditions         *ownConditions
	recorder           record.EventRecorder // nil: no events
	standsBy           func() (holder string, yes bool)
	ready              chan struct{} // closed when the node is registered and its status written
}
