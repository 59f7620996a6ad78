// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	v1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/keyqueue"
	"github.com/virtual-kubelet/virtual-kubelet/internal/sleep"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// requestTimeout limits every request about the node.
	requestTimeout = 10 * time.Second
	// maxWatchPause is the longest time between two reads of the node.
	maxWatchPause = 10 * time.Second
	// minWatchLife is the time that a watch must last to count as working.
	minWatchLife = time.Second
)

// observedNode is the node in the API server, as it was last seen.
type observedNode struct {
	node *corev1.Node // nil when the node is gone
	uid  types.UID    // the UID of the deleted node, if known
}

// nodeWatcher detects changes of the node object by other clients, above all its deletion. It watches only this object. Without permission
// to watch, it reads the object repeatedly, so that it detects a deletion within maxPause.
type nodeWatcher struct {
	nodes    v1.NodeInterface
	name     string
	maxPause time.Duration
	observed *latest[observedNode]
	check    chan struct{} // capacity 1
}

// checkSoon makes the watcher read the node without an event, because a watch on a silently broken connection delivers none.
func (w *nodeWatcher) checkSoon() {
	select {
	case w.check <- struct{}{}:
	default:
	}
}

func (w *nodeWatcher) run(ctx context.Context) {
	retry := retryPause{first: 200 * time.Millisecond, max: w.maxPause}
	for ctx.Err() == nil {
		start := time.Now()
		// The watcher reads the node before each watch: an API server that was restored from a backup may be
		// older than the end of the last watch, and would send no events.
		var version string
		var seen bool
		keyqueue.Do(ctx, func() { version, seen = w.readNode(ctx) })
		if seen {
			w.watchNode(ctx, version)
		}
		if time.Since(start) >= minWatchLife {
			retry.reset()
		}
		sleep.For(ctx, retry.next())
	}
}

// readNode reads the node and returns the version from which to watch.
func (w *nodeWatcher) readNode(ctx context.Context) (version string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	node, err := w.nodes.Get(ctx, w.name, metav1.GetOptions{})
	switch {
	case err == nil:
		w.observed.put(observedNode{node: node})
		return node.ResourceVersion, true
	case apierrors.IsNotFound(err):
		w.observed.put(observedNode{})
	default:
		log.G(ctx).WithError(err).Debug("cannot read the node, trying again")
	}
	return "", false
}

// watchNode watches the node from version on until the watch ends.
func (w *nodeWatcher) watchNode(ctx context.Context, version string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timeout := int64(300 + rand.IntN(300)) // as long as a kubelet's, but random, so that nodes do not reconnect at the same time
	establish := time.AfterFunc(requestTimeout, cancel)
	events, err := w.nodes.Watch(ctx, metav1.ListOptions{
		FieldSelector:       fields.OneTermEqualSelector(metav1.ObjectNameField, w.name).String(),
		ResourceVersion:     version,
		AllowWatchBookmarks: true,
		TimeoutSeconds:      &timeout,
	})
	establish.Stop()
	if err != nil {
		log.G(ctx).WithError(err).Debug("cannot watch the node, reading it instead")
		return
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.check:
			keyqueue.Do(ctx, func() { w.readNode(ctx) })
		case event, open := <-events.ResultChan():
			if !open || event.Type == watch.Error {
				return
			}
			if node, ok := event.Object.(*corev1.Node); ok {
				w.handleEvent(event.Type, node)
			}
		}
	}
}

func (w *nodeWatcher) handleEvent(event watch.EventType, node *corev1.Node) {
	switch {
	case event == watch.Bookmark || node.Name != w.name:
	case event == watch.Deleted:
		w.observed.put(observedNode{uid: node.UID})
	default:
		w.observed.put(observedNode{node: node})
	}
}
