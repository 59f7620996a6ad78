// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// maxAge is the maximum age of the last renewal of the process's own lease for work on nodes.
	maxAge = 7 * time.Second
	// goneAfter is the time without a renewal of a process's lease after which others take over its nodes. It is longer than maxAge.
	goneAfter = 9 * time.Second
	// maxBlind is the maximum time between two lists. After a longer time, an old lease does not prove that its member has ended.
	maxBlind = 5 * time.Second
)

// sign is the last observed renewal of a member.
type sign struct {
	renewed metav1.MicroTime // from the lease of the member: set by another clock, so only compared with earlier values
	at      time.Time        // when this process first saw the renewal
	listed  bool             // its lease was in the last list
	version string           // of its lease
	left    bool             // the member has announced its stop
}

// view is the observed state of the members of a group.
type view struct {
	looked  time.Time
	members map[string]sign
}

// recordLeases records a list of all leases of the group.
func (v *view) recordLeases(leases []coordinationv1.Lease, now time.Time) {
	blind := v.isBlind(now)
	seen := make(map[string]sign, len(leases))
	for _, l := range leases {
		s := sign{renewed: renewedAt(&l), version: l.ResourceVersion, listed: true, at: now, left: ptr.Deref(l.Spec.HolderIdentity, "") == ""}
		if last, known := v.members[l.Name]; known && last.renewed.Equal(&s.renewed) {
			s.at = last.changedSince(v.looked, now, blind)
		}
		seen[l.Name] = s
	}
	for name, last := range v.members { // the lease of a live member may be deleted
		if _, listed := seen[name]; !listed && !last.left {
			last.at, last.listed = last.changedSince(v.looked, now, blind), false
			if now.Sub(last.at) < goneAfter {
				seen[name] = last
			}
		}
	}
	v.members, v.looked = seen, now
}

// changedSince returns the time of the last change of a sign. This process may miss changes between lists, but a member that was gone before, and
// still has the same sign, has been gone all the time.
func (s sign) changedSince(looked, now time.Time, blind bool) time.Time {
	if blind && looked.Sub(s.at) < goneAfter {
		return now
	}
	return s.at
}

func (v *view) isBlind(now time.Time) bool { return now.Sub(v.looked) > maxBlind }

// liveMembers returns the members that may be alive and have not left, sorted by name.
func (v *view) liveMembers(now time.Time) (names []string) {
	for name, s := range v.members {
		if !s.left && now.Sub(s.at) < goneAfter {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// isGone reports whether a member can no longer act. Its lease was requested at asked, after the read of a node's
// lease that names the member.
func (v *view) isGone(name string, read *coordinationv1.Lease, asked time.Time) bool {
	s, known := v.members[name]
	renewed := renewedAt(read)
	return known && !v.isBlind(asked) && renewed.Equal(&s.renewed) && asked.Sub(s.at) >= goneAfter
}

// oldLeases returns the resource versions of leases without a renewal for a long time, by name.
func (v *view) oldLeases(now time.Time) map[string]string {
	found := map[string]string{}
	for name, s := range v.members {
		if s.listed && now.Sub(s.at) > 6*goneAfter {
			found[name] = s.version
		}
	}
	return found
}

func renewedAt(l *coordinationv1.Lease) metav1.MicroTime {
	if l.Spec.RenewTime == nil {
		return metav1.MicroTime{}
	}
	return *l.Spec.RenewTime
}
