// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
)

const (
	reconcilerFirstRetry = 200 * time.Millisecond
	// reconcilerMaxRetry is short so that the node recovers soon after the API server.
	reconcilerMaxRetry = 4 * time.Second
)

// nodeReconciler owns the desired node and the last known node of the API server, and updates the latter to match. Only its goroutine
// writes the node; other goroutines send to its mailboxes.
type nodeReconciler struct {
	nodeSettings
	nodeMail

	registered chan struct{} // closed when the node exists
	isReady    metrics.Value // 1: the node should be Ready

	// Owned by run.
	ours bool   // this process may write the node
	role string // the reason of the last event about ours; "": none
	nodeWanted
	nodeSeen
	nodeWrites
}

// nodeMail has the mailboxes of the node reconciler. They are safe for concurrent use.
type nodeMail struct {
	reports  *latest[*corev1.Node]
	pings    *latest[pingResult]
	observed *latest[observedNode]
	owners   *latest[types.UID]
	holds    *latest[bool] // whether this process may write the node
}

// nodeWanted is the desired state of the node.
type nodeWanted struct {
	want        *corev1.Node
	ping        pingResult
	pingChanged time.Time
	down        bool // the node shuts down
	shown       []corev1.NodeCondition
}

// nodeSeen is the known state of the node in the API server.
type nodeSeen struct {
	server     *corev1.Node // nil if the node does not exist or is unknown
	seenBefore bool         // the node was registered at least once
	lost       bool         // its deletion was observed and not yet reported
}

// nodeWrites is the record of the writes of the node, and of the writes that are due.
type nodeWrites struct {
	urgent      bool
	gap         *string // the result of difference, nil after a change
	mode        int     // index into nodeMetadataModes
	refused     string  // the part that the API server ignored, see hasDrifted
	forbidden   string  // the metadata patch that was forbidden in every mode
	forbiddenAt time.Time
	retry       retryPause
	retryAt     time.Time
	lastWrite   time.Time
	lastReport  time.Time
	failing     bool
}

func newNodeReconciler(s nodeSettings, elected bool) *nodeReconciler {
	return &nodeReconciler{
		nodeSettings: s,
		nodeMail: nodeMail{
			reports: newLatest[*corev1.Node](), pings: newLatest[pingResult](), observed: newLatest[observedNode](),
			owners: newLatest[types.UID](), holds: newLatest[bool](),
		},
		registered: make(chan struct{}),
		ours:       !elected,
		nodeWanted: nodeWanted{want: s.node.DeepCopy()},
		nodeWrites: nodeWrites{retry: retryPause{first: reconcilerFirstRetry, max: reconcilerMaxRetry}},
	}
}

func (r *nodeReconciler) waitRegistered(ctx context.Context) bool {
	select {
	case <-r.registered:
		return true
	case <-ctx.Done():
		return false
	}
}

// takeNodeReport stores the provider's report about its node.
func (r *nodeReconciler) takeNodeReport(node *corev1.Node) {
	if node == nil {
		return
	}
	said := &corev1.Node{}
	node.Status.DeepCopyInto(&said.Status)
	said.Labels = maps.Clone(node.Labels)
	said.Annotations = maps.Clone(node.Annotations)
	r.reports.put(said)
}

// recordObject records node as the object that the API server holds.
func (r *nodeReconciler) recordObject(node *corev1.Node) {
	if r.server == nil || r.server.UID != node.UID || !r.seenBefore {
		r.owners.put(node.UID)
	}
	r.server = node
	if !r.seenBefore {
		r.seenBefore = true
		close(r.registered)
	}
}
