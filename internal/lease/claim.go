// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// HolderAnnotation of a lease names the process in charge of the node. The holder identity cannot name it, because the control plane expects the
	// node's name there. An empty value means that the last holder has released the lease.
	HolderAnnotation = "virtual-kubelet.io/holder"
	// StandbyAnnotation asks the holder to renew more often. The holder removes the annotation with its next renewal.
	StandbyAnnotation = "virtual-kubelet.io/standby"
	// announceStep is the change of the renewal time by Announce: the smallest step in a lease.
	announceStep = time.Microsecond

	// takeoverAfter is the time without a renewal by the holder after which another process takes over. It is longer than MaxAge.
	takeoverAfter = 12 * time.Second
	// maxBlind is the maximum time between two reads of the lease by a waiting process. After a longer time, an old lease does not prove that the
	// holder has ended.
	maxBlind = 6 * time.Second

	unnamedHolder = "a process without a name"
)

// Result is the relation of a lease to this process.
type Result int

const (
	// Ours is a lease that this process has held without a gap.
	Ours Result = iota
	// Free is a lease without a process that may still act for the node.
	Free
	// Theirs is a lease of another process, now or until recently.
	Theirs
)

// Claim decides which process has the lease of a node. It relies on changes of the lease and on the clock of this machine, and never compares the
// clocks of two machines.
type Claim struct {
	Self  Mark
	Ended func(Mark) bool // reports that a process has provably ended

	Held    bool             // the lease was ours at the last read
	Anew    bool             // the lease was not ours before, or may not have been
	Holder  string           // the last other process seen with the lease
	renewed metav1.MicroTime // at the last read, or as written by this process
	alive   time.Time        // the last renewal by the other process
	looked  time.Time        // the last read of the lease
}

// Judge returns the owner of a lease that was just read (nil if there is no lease), and the minimum time until the owner can change.
func (c *Claim) Judge(lease *coordinationv1.Lease, now time.Time) (Result, time.Duration) {
	blind := now.Sub(c.looked) > maxBlind
	c.looked = now
	holder, named := "", false
	renewed := c.renewed
	if lease != nil {
		holder, named = lease.Annotations[HolderAnnotation]
		renewed = metav1.MicroTime{}
		if lease.Spec.RenewTime != nil {
			renewed = *lease.Spec.RenewTime
		}
	}
	same := renewed.Equal(&c.renewed) || announced(lease, c.renewed)
	c.renewed = renewed
	switch {
	case holder == c.Self.Text(),
		// A name without a renewal is a manual edit, not a claim.
		c.Held && lease != nil && same:
		return Ours, 0
	case c.Held && lease == nil, // the lease was deleted with its node or manually
		named && holder == "", // given up
		!named && c.Holder == "" && !c.Held,
		named && c.Ended(ParseMark(holder)):
		return Free, 0
	}
	if !named && c.Held { // the annotations of the lease were replaced, and the lease was renewed
		holder, named = unnamedHolder, true
	}
	if named && holder != c.Holder {
		c.Holder, same = holder, false
	}
	if c.Held || blind || !same {
		c.alive = now
	}
	c.Held = false
	if left := c.alive.Add(takeoverAfter).Sub(now); left > 0 {
		return Theirs, left
	}
	return Free, 0
}

// Announce marks Self as waiting in the lease of another process. It slightly changes the renewal time: with the feature gate
// NodeControllerLeaseCircuitBreaker, the control plane treats a change of a lease without a renewal as a missed renewal, and waits for the renewal
// for ever. The node would then stay ready after the end of its processes.
func (c *Claim) Announce(lease *coordinationv1.Lease) {
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, StandbyAnnotation, c.Self.Text())
	if at := lease.Spec.RenewTime; at != nil {
		later := metav1.NewMicroTime(at.Add(announceStep))
		lease.Spec.RenewTime = &later
	}
}

// announced reports whether the lease has only changed by Announce since the last renewal. Such a change is not a renewal by the holder.
func announced(lease *coordinationv1.Lease, renewed metav1.MicroTime) bool {
	return lease != nil && lease.Annotations[StandbyAnnotation] != "" && lease.Spec.RenewTime != nil &&
		lease.Spec.RenewTime.Time.Equal(renewed.Add(announceStep))
}

// Took records that this process has just written the lease.
func (c *Claim) Took(lease *coordinationv1.Lease) {
	c.Held, c.Anew, c.Holder = true, false, ""
	c.renewed = metav1.MicroTime{}
	if lease.Spec.RenewTime != nil {
		c.renewed = *lease.Spec.RenewTime
	}
}
