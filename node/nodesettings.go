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

	// DefaultLeaseDuration is how long a node lease is valid, in seconds.
	DefaultLeaseDuration = 40

	// DefaultRenewIntervalFraction is the part of the lease duration after which the lease is renewed.
	DefaultRenewIntervalFraction = 0.25
)

// ErrorHandler decides about an error. It returns nil when it has handled the error; the failed action is then
// tried once more at once. Otherwise it returns an error, which counts as the outcome.
type ErrorHandler func(context.Context, error) error

// nodeSettings are the settings of NewNodeController and its options, and the settings that other parts add.
// They are constant afterwards.
type nodeSettings struct {
	node               *corev1.Node
	nodes              v1.NodeInterface
	leased             bool // a lease shows that the process lives
	pingInterval       time.Duration
	statusInterval     time.Duration
	statusErrorHandler ErrorHandler
	shutdown           *latest[struct{}] // safe for concurrent use
	conditions         *ownConditions
	recorder           record.EventRecorder // nil: no events
	standsBy           func() (holder string, yes bool)
	ready              chan struct{} // closed when the node is registered and its status written
}
