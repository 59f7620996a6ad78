// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"fmt"
	"slices"
	"strings"
)

// Nearest returns the known name that a person who typed name most likely meant, or "" when none is similar.
// Upper and lower case do not count.
func Nearest(name string, known []string) string {
	slices.Sort(known)
	best, bestDistance := "", len(name)/3+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d <= bestDistance && (best == "" || d < bestDistance) {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance returns the number of letters to insert, remove, replace or swap with their neighbour to turn a into
// b.
func distance(a, b string) int {
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}

// Unknown returns the error for an unknown field; nearest is the field that was likely meant, or "".
func Unknown(field string, at Position, nearest string) error {
	if nearest == "" {
		return fmt.Errorf("unknown field %q at %s", field, at)
	}
	return fmt.Errorf("unknown field %q at %s; did you mean %s?", field, at, nearest)
}
