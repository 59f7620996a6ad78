// SPDX-License-Identifier: Apache-2.0

// Package stats measures the use of pods and their machine: the summary of a kubelet's /stats/summary and the
// families of its /metrics/resource, from the statistics of a container runtime and the files in /proc.
//
// The guarantee: unknown values are left out and never zero, counters of a pod do not fall when one of its
// containers starts again, and the runtime gets at most one request a second, for any number of callers.
//
// The surprise: with a runtime without sandbox statistics, such as containerd 1.6, a pod is the sum of its
// containers. On systems without /proc the figures of the machine are missing.
package stats
