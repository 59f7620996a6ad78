// SPDX-License-Identifier: Apache-2.0

// Package stats measures what pods and their machine use: the summary of a kubelet's /stats/summary and the families of its
// /metrics/resource, from the statistics of a container runtime and the files in /proc.
//
// The guarantee: what is not known is left out and never zero, counters of a pod do not fall when one of its containers
// is started again, and the runtime is asked at most once a second, however many ask here.
//
// What surprises: a runtime that knows no statistics of sandboxes, such as containerd 1.6, makes a pod the sum of
// its containers. On systems without /proc the figures of the machine are missing.
package stats
