// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"encoding/json"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// watcher is a daemon with a stream of changes. Changes unread at its death are lost.
type watcher struct {
	node   string // the node of its pods; "": all nodes
	mu     sync.Mutex
	queue  []*corev1.Pod // guarded by mu
	wake   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (w *watcher) queuePod(pod *corev1.Pod) {
	if w.node != "" && pod.Spec.NodeName != w.node {
		return
	}
	w.mu.Lock()
	w.queue = append(w.queue, pod)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) takeQueue() []*corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	queue := w.queue
	w.queue = nil
	return queue
}

func (w *watcher) close() { w.once.Do(func() { close(w.closed) }) }

func (b *Backend) serveWatch(rw http.ResponseWriter, req *http.Request) {
	w := &watcher{node: req.URL.Query().Get("node"), wake: make(chan struct{}, 1), closed: make(chan struct{})}
	b.mu.Lock()
	b.watchers[w] = struct{}{}
	if b.replay {
		for _, list := range b.instances {
			for _, i := range list {
				w.queuePod(i.pod)
			}
		}
	}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.watchers, w)
		b.mu.Unlock()
	}()
	flusher := rw.(http.Flusher)
	flusher.Flush() // tells the client that the backend now sends events
	lines := json.NewEncoder(rw)
	for {
		for _, pod := range w.takeQueue() {
			if err := lines.Encode(pod); err != nil {
				return
			}
		}
		flusher.Flush()
		select {
		case <-w.wake:
		case <-w.closed:
			return
		case <-req.Context().Done():
			return
		}
	}
}
