// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"container/heap"
	"time"
)

// queue has the waiting probes. The next probe is at its head.
type queue []*probe

func (q *queue) add(w *probe) { heap.Push(q, w) }

// remove removes a probe if it is in the queue.
func (q *queue) remove(w *probe) {
	if w.isQueued() {
		heap.Remove(q, w.place-1)
	}
}

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i+1, j+1
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	w := x.(*probe)
	*q = append(*q, w)
	w.place = len(*q)
}

// Pop is for package heap.
func (q *queue) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	w.place = 0
	return w
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
