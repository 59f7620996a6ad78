// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"container/heap"
	"time"
)

// agenda orders pods by the time of their next report. It implements heap.Interface
// and is not safe for concurrent use.
type agenda []*simulated

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].due.Before(a[j].due) }
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].index, a[j].index = i, j
}

// Push appends a pod; only package heap calls it.
func (a *agenda) Push(x any) {
	s := x.(*simulated)
	s.index = len(*a)
	*a = append(*a, s)
}

// Pop removes the last pod; only package heap calls it.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	s := (*a)[last]
	(*a)[last], *a = nil, (*a)[:last]
	s.index = -1
	return s
}

// planReport sets the time of the next report of s; zero means never.
func (a *agenda) planReport(s *simulated, due time.Time) {
	switch {
	case due.IsZero() && s.index >= 0:
		heap.Remove(a, s.index)
	case due.IsZero():
	case s.index >= 0:
		s.due = due
		heap.Fix(a, s.index)
	default:
		s.due = due
		heap.Push(a, s)
	}
}
