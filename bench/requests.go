// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"
)

// requests are numbers of requests by verb and resource.
type requests map[string]int

// sum returns the number of all requests.
func (r requests) sum() (n int) {
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

// of counts the requests of the named kinds.
func (r requests) of(keys ...string) (n int) {
	for _, key := range keys {
		n += r[key]
	}
	return n
}

// podWrites counts the writes of pods.
func (r requests) podWrites() int {
	return r.of("patch pods/status", "update pods/status", "patch pods", "update pods", "delete pods")
}

// events counts the writes of events.
func (r requests) events() int { return r.of("create events", "patch events", "update events") }

// heartbeats counts a node's requests at rest.
func (r requests) heartbeats() (n int) {
	for key, count := range r {
		if (auditLine{key: key}).isHeartbeat() {
			n += count
		}
	}
	return n
}

// ordered returns the kinds of requests, the most frequent first.
func (r requests) ordered() []string {
	return slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		if r[a] != r[b] {
			return r[b] - r[a]
		}
		return strings.Compare(a, b)
	})
}
