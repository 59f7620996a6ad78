// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"
)

// requests are numbers of requests by verb and resource.
type requests map[string]int

// countAll returns the number of all requests.
func (r requests) countAll() (n int) {
	for _, count := range r {
		n += count
	}
	return n
}

// add counts the requests of more too.
func (r requests) add(more requests) {
	for key, count := range more {
		r[key] += count
	}
}

// countKinds counts the requests of the named kinds.
func (r requests) countKinds(keys ...string) (n int) {
	for _, key := range keys {
		n += r[key]
	}
	return n
}

// podWrites counts the writes of pods.
func (r requests) podWrites() int {
	return r.countKinds("patch pods/status", "update pods/status", "patch pods", "update pods", "delete pods")
}

// countEvents counts the writes of events.
func (r requests) countEvents() int {
	return r.countKinds("create events", "patch events", "update events")
}

// countHeartbeats counts a node's requests at rest.
func (r requests) countHeartbeats() (n int) {
	for key, count := range r {
		if (auditLine{key: key}).isHeartbeat() {
			n += count
		}
	}
	return n
}

// orderedKinds returns the kinds of requests, the most frequent first.
func (r requests) orderedKinds() []string {
	return slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		if r[a] != r[b] {
			return r[b] - r[a]
		}
		return strings.Compare(a, b)
	})
}
