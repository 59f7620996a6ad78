// SPDX-License-Identifier: Apache-2.0

package keyqueue

// delayed is a heap of waiting items, soonest first.
type delayed []*item

func (h delayed) Len() int           { return len(h) }
func (h delayed) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h delayed) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

func (h *delayed) Push(x any) {
	it := x.(*item)
	it.pos = len(*h)
	*h = append(*h, it)
}

func (h *delayed) Pop() any {
	old := *h
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return it
}
