// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
)

// Ledger returns the history of the backend until now.
func (b *Backend) Ledger() []ledger.Entry { return b.Recorder.History().Ledger }

// Count returns the number of calls, given as method and key.
func (b *Backend) Count(call string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.calls {
		if c == call {
			n++
		}
	}
	return n
}

// Calls returns the mutating calls so far, as method and key.
func (b *Backend) Calls() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

// Faults returns events that must never happen: overlapping calls and second instances of one UID.
func (b *Backend) Faults() (out []string) {
	for _, v := range ledger.AtMostOneInstance(b.Recorder.History()) {
		out = append(out, "ran twice: "+string(v.UID))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range b.overlap {
		out = append(out, "calls overlapped for "+key)
	}
	return out
}

// Len returns the number of pods at the backend.
func (b *Backend) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.instances)
}

// Has returns the backend's pod of the key as callers get it, or nil.
func (b *Backend) Has(key string) *corev1.Pod {
	b.mu.Lock()
	defer b.mu.Unlock()
	if in := b.instanceNamed(key); in != nil {
		return b.copyForCaller(in.pod)
	}
	return nil
}

// Instances returns the running instances of a UID, the oldest first.
func (b *Backend) Instances(uid types.UID) (ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, in := range b.instances {
		if in.running && in.pod.UID == uid {
			ids = append(ids, in.id)
		}
	}
	return ids
}
