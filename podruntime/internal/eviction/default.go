// SPDX-License-Identifier: Apache-2.0

package eviction

import "strconv"

// standard is a threshold of a kubelet, and its upper bound on a large machine.
type standard struct {
	signal  Signal
	percent float64 // 0 is most itself
	most    float64
}

// largest and largestInodes bound the bytes and inodes kept free by the defaults: on a large disk a kubelet's
// percentages are more than the machine itself ever needs.
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

// Default returns the setting for a machine with other work: the thresholds of a kubelet, but no more than for a
// large machine, and no more than half of the available amount. So no threshold is met before pods have used
// something.
func Default(now Observations) map[string]string {
	setting := map[string]string{}
	for _, s := range standards {
		seen, measured := now[s.signal]
		if !measured {
			continue // a signal that cannot be measured needs no threshold
		}
		least := min(s.most, float64(seen.Available)/2)
		if s.percent > 0 {
			least = min(least, float64(seen.Capacity)*s.percent/100)
		}
		setting[string(s.signal)] = strconv.FormatInt(int64(least), 10)
	}
	return setting
}
