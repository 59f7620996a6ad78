// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxAge is how old the last renewal of the own lease may be for work on nodes.
	maxAge = 7 * time.Second
	// goneAfter is how long the lease of a process must have shown no renewal for others to take its nodes. It is longer than maxAge.
	goneAfter = 9 * time.Second
	// maxBlind is how long a process may go without a look at the leases: what happened in a longer time is unknown, and no sign of an end.
	maxBlind = 5 * time.Second
)

// sign is the last sign of life of a member.
type sign struct {
	renewed metav1.MicroTime // as its lease says: of another clock, so only compared with itself
	at      time.Time        // when it was first seen here
	listed  bool             // its lease was in the last list
}

// view is what was seen of the members of a group.
type view struct {
	looked  time.Time
	members map[string]sign
}

// see takes in a list of all leases of the group.
func (v *view) see(leases []coordinationv1.Lease, now time.Time) {
	blind := v.blind(now)
	v.looked = now
	seen := make(map[string]sign, len(leases))
	for _, l := range leases {
		s := sign{renewed: renewedAt(&l), at: now, listed: true}
		if last, known := v.members[l.Name]; known && !blind && last.renewed.Equal(&s.renewed) {
			s.at = last.at
		}
		seen[l.Name] = s
	}
	for name, last := range v.members { // whose lease was deleted may still live
		if _, listed := seen[name]; !listed && (blind || now.Sub(last.at) < 2*goneAfter) {
			if blind {
				last.at = now
			}
			last.listed = false
			seen[name] = last
		}
	}
	v.members = seen
}

func (v *view) blind(now time.Time) bool { return now.Sub(v.looked) > maxBlind }

// live are the members that have a lease and may still live, in the order of their names.
func (v *view) live(now time.Time) (names []string) {
	for name, s := range v.members {
		if s.listed && now.Sub(s.at) < goneAfter {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// gone reports whether the member, whose lease was read after the lease of a node that it holds, can no longer act. nil: it has no lease.
func (v *view) gone(name string, read *coordinationv1.Lease, now time.Time) bool {
	if v.blind(now) {
		return false
	}
	s, known := v.members[name]
	if !known {
		s = sign{at: now}
		if v.members == nil {
			v.members = map[string]sign{}
		}
		v.members[name] = s
		return false
	}
	if renewed := renewedAt(read); read != nil && !renewed.Equal(&s.renewed) {
		return false
	}
	return now.Sub(s.at) >= goneAfter
}

// old are the members that have a lease that nobody has renewed for a long time.
func (v *view) old(now time.Time) (names []string) {
	for name, s := range v.members {
		if s.listed && now.Sub(s.at) > 6*goneAfter {
			names = append(names, name)
		}
	}
	return names
}

func renewedAt(l *coordinationv1.Lease) metav1.MicroTime {
	if l == nil || l.Spec.RenewTime == nil {
		return metav1.MicroTime{}
	}
	return *l.Spec.RenewTime
}
