// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
)

// Nodes is a client for nodes. One shared watch feeds the watches of its own nodes. Make it with NewNodes.
type Nodes struct {
	corev1client.NodeInterface // for everything else
	source                     cache.ListerWatcher

	mu   sync.Mutex
	last map[string]observedNode        // guarded by mu; an entry for each node
	subs map[string]map[*nodeWatch]bool // guarded by mu
}

// observedNode is the last observed state of a node. It is nil before the first observation.
type observedNode struct {
	node *corev1.Node
	gone bool
}

// NewNodes returns a client that sends requests through client and watches the nodes called names on source. The
// caller runs it.
func NewNodes(client corev1client.NodeInterface, source cache.ListerWatcher, names []string) *Nodes {
	n := &Nodes{NodeInterface: client, source: source, last: make(map[string]observedNode, len(names)), subs: make(map[string]map[*nodeWatch]bool, len(names))}
	for _, name := range names {
		n.last[name] = observedNode{}
	}
	return n
}

// Run watches until ctx ends, and then returns nil.
func (n *Nodes) Run(ctx context.Context) error {
	cache.NewReflectorWithOptions(n.source, &corev1.Node{}, (*nodeRouter)(n), cache.ReflectorOptions{Name: "nodes of this process"}).RunWithContext(ctx)
	return nil
}

// Watch watches one node. For a node of NewNodes it sends the current state if that is newer than the requested
// version, and then the events of the shared watch.
func (n *Nodes) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	name := nameIn(options.FieldSelector)
	if !n.isOurs(name) {
		return n.NodeInterface.Watch(ctx, options)
	}
	w := &nodeWatch{all: n, name: name, events: make(chan watch.Event, 4)}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.subs[name] == nil {
		n.subs[name] = map[*nodeWatch]bool{}
	}
	n.subs[name][w] = true
	if last := n.last[name]; last.node != nil && isNewer(last.node.ResourceVersion, options.ResourceVersion) {
		w.sendLocked(last)
	}
	return w, nil
}

func (n *Nodes) isOurs(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ours := n.last[name]
	return ours
}

// recordNode records a new state of a node and sends it to its watchers.
func (n *Nodes) recordNode(s observedNode) {
	if !n.isOurs(s.node.Name) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	trimmed := *s.node
	trimmed.ManagedFields = nil // no code here reads managed fields
	s.node = &trimmed
	n.last[s.node.Name] = s
	for w := range n.subs[s.node.Name] {
		w.sendLocked(s)
	}
}

// nodeWatch is a watch of one node.
type nodeWatch struct {
	all    *Nodes
	name   string
	events chan watch.Event // closed under all.mu when the subscriber is removed from all.subs
}

// ResultChan returns the events.
func (w *nodeWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop ends the watch.
func (w *nodeWatch) Stop() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.endLocked()
}

// sendLocked sends a state to the client of a watch. Like the API server, it ends the watch of a client that does not read. The next watch of that
// client begins with the missed states.
func (w *nodeWatch) sendLocked(s observedNode) {
	kind := watch.Modified
	if s.gone {
		kind = watch.Deleted
	}
	select {
	case w.events <- watch.Event{Type: kind, Object: s.node}:
	default:
		w.endLocked()
	}
}

func (w *nodeWatch) endLocked() {
	if w.all.subs[w.name][w] {
		delete(w.all.subs[w.name], w)
		close(w.events)
	}
}

// nodeRouter is Nodes as the store of the reflector.
type nodeRouter Nodes

// Add handles an event of the watch.
func (r *nodeRouter) Add(obj any) error {
	if node, ok := obj.(*corev1.Node); ok {
		(*Nodes)(r).recordNode(observedNode{node: node})
	}
	return nil
}

// Update handles an event of the watch.
func (r *nodeRouter) Update(obj any) error { return r.Add(obj) }

// Delete handles an event of the watch.
func (r *nodeRouter) Delete(obj any) error {
	if node, ok := obj.(*corev1.Node); ok {
		(*Nodes)(r).recordNode(observedNode{node: node, gone: true})
	}
	return nil
}

// Replace handles a list. A known node that is missing in the list is deleted.
func (r *nodeRouter) Replace(items []any, version string) error {
	n := (*Nodes)(r)
	there := make(map[string]bool, len(items))
	for _, item := range items {
		node, ok := item.(*corev1.Node)
		if !ok {
			continue
		}
		there[node.Name] = true
		if last := n.lastOf(node.Name); last.node == nil || last.gone || last.node.ResourceVersion != node.ResourceVersion {
			n.recordNode(observedNode{node: node})
		}
	}
	for name := range n.last { // its keys are constant
		if last := n.lastOf(name); last.node != nil && !last.gone && !there[name] {
			tombstone := *last.node
			tombstone.ResourceVersion = version
			n.recordNode(observedNode{node: &tombstone, gone: true})
		}
	}
	return nil
}

// Resync does nothing, because the owner of a node resyncs by itself.
func (r *nodeRouter) Resync() error { return nil }

func (n *Nodes) lastOf(name string) observedNode {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last[name]
}

// nameIn returns the name that a field selector selects, or "" for other selectors.
func nameIn(selector string) string {
	parsed, err := fields.ParseSelector(selector)
	if err != nil || len(parsed.Requirements()) != 1 {
		return ""
	}
	name, _ := parsed.RequiresExactMatch(metav1.ObjectNameField)
	return name
}

// isNewer compares resource versions as numbers. Versions that are not numbers count as newer if they differ, because a repeated state is harmless.
func isNewer(a, b string) bool {
	x, errA := strconv.ParseUint(a, 10, 64)
	y, errB := strconv.ParseUint(b, 10, 64)
	if errA != nil || errB != nil {
		return a != b
	}
	return x > y
}
