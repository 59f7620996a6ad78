// SPDX-License-Identifier: Apache-2.0

package eviction

import "strconv"

// standard is the default threshold of a kubelet with an upper bound for large machines.
type standard struct {
	signal  Signal
	percent float64 // 0: only most applies
	most    float64
}

// largest and largestInodes bound the bytes and inodes kept free by the defaults: on a large disk, a kubelet's percentages are more than the machine
// needs.
const (
	largest       = 5 << 30
	largestInodes = 250_000
)

var standards = []standard{
	{MemoryAvailable, 0, 100 << 20},
	{NodeFsAvailable, 10, largest},
	{NodeFsInodesFree, 5, largestInodes},
	{ImageFsAvailable, 15, largest},
	{ImageFsInodesFree, 5, largestInodes},
}

// Default returns the thresholds for a machine with other workloads: the defaults of a kubelet, but at most the upper bounds, and at most half of the
// available amount. So no threshold is met before pods use resources.
func Default(now Observations) map[string]string {
	setting := map[string]string{}
	for _, s := range standards {
		seen, measured := now[s.signal]
		if !measured {
			continue // a signal without a measurement needs no threshold
		}
		least := min(s.most, float64(seen.Available)/2)
		if s.percent > 0 {
			least = min(least, float64(seen.Capacity)*s.percent/100)
		}
		setting[string(s.signal)] = strconv.FormatInt(int64(least), 10)
	}
	return setting
}
