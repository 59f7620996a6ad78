// SPDX-License-Identifier: Apache-2.0

// Package stats measures the resource usage of pods and their machine: the summary of a kubelet's /stats/summary and the metrics of its
// /metrics/resource, from the statistics of a container runtime and the files in /proc.
//
// The guarantee: unknown values are omitted and never reported as zero, counters of a pod do not fall when one of its containers restarts, and the
// runtime gets at most one round of requests per second, for any number of callers.
//
// Note: with a runtime without sandbox statistics, such as containerd 1.6, the usage of a pod is the sum of its containers. On systems
// without /proc, the values of the machine are missing.
package stats
