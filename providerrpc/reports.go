// SPDX-License-Identifier: Apache-2.0

package providerrpc

import (
	"encoding/json"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// maxRetained is the maximum number of reports that are kept while no node is connected. A provider may report a
// final status only once, so it must not be lost. The node requests the status of all other pods when it
// connects.
const maxRetained = 10_000

// queue holds the latest report of each pod, in the order of the first reports.
type queue struct {
	order   []types.UID
	reports map[types.UID][]byte
	wake    chan struct{}
}

func newQueue() *queue {
	return &queue{reports: map[types.UID][]byte{}, wake: make(chan struct{}, 1)}
}

func (q *queue) putReport(uid types.UID, report []byte) {
	if _, waiting := q.reports[uid]; !waiting {
		q.order = append(q.order, uid)
	}
	q.reports[uid] = report
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// takeReports removes and returns reports of about listChunkBytes, or nil if there are none.
func (q *queue) takeReports() (taken [][]byte) {
	size := 0
	for len(q.order) > 0 && size < listChunkBytes {
		uid := q.order[0]
		taken = append(taken, q.reports[uid])
		size += len(q.reports[uid])
		delete(q.reports, uid)
		q.order = q.order[1:]
	}
	return taken
}

// reports passes the reports of a provider to every watching node, and keeps them while no node watches.
type reports struct {
	closed chan struct{}
	once   sync.Once

	mu       sync.Mutex
	watchers map[*queue]struct{} // guarded by mu, including the queues
	retained *queue              // guarded by mu
}

func newReports() *reports {
	return &reports{closed: make(chan struct{}), watchers: map[*queue]struct{}{}, retained: newQueue()}
}

func (r *reports) close() { r.once.Do(func() { close(r.closed) }) }

// acceptReport is the notify function of the provider.
func (r *reports) acceptReport(pod *corev1.Pod) {
	if pod == nil {
		return
	}
	encoded, err := wire.Marshal(encoding, pod)
	if err != nil {
		return // encoding a valid pod never fails
	}
	uid := pod.UID
	if uid == "" {
		uid = types.UID(pod.Namespace + "/" + pod.Name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for q := range r.watchers {
		q.putReport(uid, encoded)
	}
	if len(r.watchers) == 0 {
		r.retained.putReport(uid, encoded)
		if len(r.retained.order) > maxRetained {
			delete(r.retained.reports, r.retained.order[0])
			r.retained.order = r.retained.order[1:]
		}
	}
}

// openWatch returns a queue with the retained reports and all reports from now on.
func (r *reports) openWatch() *queue {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.retained
	r.retained = newQueue()
	r.watchers[q] = struct{}{}
	return q
}

// endWatch ends a watch. If no other node watches, endWatch keeps the reports that are left in the queue.
func (r *reports) endWatch(q *queue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.watchers, q)
	if len(r.watchers) == 0 {
		r.retained = q
	}
}

func (r *reports) takeReports(q *queue) [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return q.takeReports()
}

// WatchPods sends the reports of the provider until the stream ends.
func (s *server) WatchPods(_ *rpc.WatchPodsRequest, stream rpc.Provider_WatchPodsServer) error {
	q := s.reports.openWatch()
	defer s.reports.endWatch(q)
	if err := stream.Send(&rpc.PodsReport{}); err != nil {
		return err
	}
	for {
		pods := s.reports.takeReports(q)
		if pods == nil {
			select {
			case <-stream.Context().Done():
				return stream.Context().Err()
			case <-s.reports.closed:
				return nil
			case <-q.wake:
				continue
			}
		}
		if err := stream.Send(&rpc.PodsReport{Pods: pods}); err != nil {
			return err
		}
	}
}

// nodes passes the latest status of the node to every watching node.
type nodes struct {
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	latest  []byte        // guarded by mu; nil: none yet
	changed chan struct{} // guarded by mu; closed when latest changes
}

func newNodes() *nodes { return &nodes{closed: make(chan struct{}), changed: make(chan struct{})} }

func (n *nodes) close() { n.once.Do(func() { close(n.closed) }) }

// acceptNode is the function that the provider gets by NotifyNodeStatus.
func (n *nodes) acceptNode(node *corev1.Node) {
	encoded, err := json.Marshal(node)
	if err != nil {
		return // encoding a valid node never fails
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.latest = encoded
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *nodes) get() (latest []byte, changed chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.latest, n.changed
}

// WatchNode sends the last reported node, and every later change.
func (s *server) WatchNode(_ *rpc.WatchNodeRequest, stream rpc.Provider_WatchNodeServer) error {
	for {
		latest, changed := s.nodes.get()
		if latest != nil {
			if err := stream.Send(&rpc.NodeReport{NodeJson: latest}); err != nil {
				return err
			}
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-s.nodes.closed:
			return nil
		case <-changed:
		}
	}
}
