// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// holderAnnotation of a lease names the process that may act for the node. The
	// holder identity cannot: the control plane wants the node's name there. The
	// empty text says that the last holder has given the lease up.
	holderAnnotation = "virtual-kubelet.io/holder"
	// standbyAnnotation asks the holder to show more often that it lives. The holder
	// takes it away with its next renewal.
	standbyAnnotation = "virtual-kubelet.io/standby"

	// takeoverAfter is how long a holder must have shown no sign of life before
	// another process takes its place. It is longer than fenceAge.
	takeoverAfter = 12 * time.Second
	// maxBlind is how long a process that waits may go without a look at the lease:
	// what happened in a longer time is unknown, and no sign of death.
	maxBlind = 6 * time.Second

	unnamedHolder = "a process without a name"
)

// claimVerdict says whose a lease is.
type claimVerdict int

const (
	claimOurs   claimVerdict = iota // and it was ours all the time
	claimFree                       // nobody who could still act has it
	claimTheirs                     // another process has it, or had it a moment ago
)

// leaseClaim decides whose the lease of a node is, by its changes and the time that
// passes here: clocks of two machines are never compared.
type leaseClaim struct {
	self  processMark
	ended func(processMark) bool // reports that a process has provably ended

	held    bool             // the lease was ours when it was last seen
	anew    bool             // it was not, or may not have been, before that
	holder  string           // the other process that was last seen to have it
	renewed metav1.MicroTime // as last seen, or as we wrote it
	alive   time.Time        // when the other last showed that it lives
	looked  time.Time        // when the lease was last seen
}

// judge says whose the lease is that was just read, nil if there is none, and for
// how long it is at least theirs.
func (c *leaseClaim) judge(lease *coordinationv1.Lease, now time.Time) (claimVerdict, time.Duration) {
	blind := now.Sub(c.looked) > maxBlind
	c.looked = now
	holder, named := "", false
	renewed := c.renewed
	if lease != nil {
		holder, named = lease.Annotations[holderAnnotation]
		renewed = metav1.MicroTime{}
		if lease.Spec.RenewTime != nil {
			renewed = *lease.Spec.RenewTime
		}
	}
	same := renewed.Equal(&c.renewed)
	c.renewed = renewed
	switch {
	case holder == c.self.text(),
		// A name without a renewal is no claim, but somebody's edit.
		c.held && lease != nil && same:
		return claimOurs, 0
	case c.held && lease == nil, // it went with its node, or somebody deleted it
		named && holder == "", // given up
		!named && c.holder == "" && !c.held,
		named && c.ended(parseMark(holder)):
		return claimFree, 0
	}
	if !named && c.held { // its annotations were replaced, and it was renewed
		holder, named = unnamedHolder, true
	}
	if named && holder != c.holder {
		c.holder, same = holder, false
	}
	if c.held || blind || !same {
		c.alive = now
	}
	c.held = false
	if left := c.alive.Add(takeoverAfter).Sub(now); left > 0 {
		return claimTheirs, left
	}
	return claimFree, 0
}

// took notes that the lease is ours as it was just written.
func (c *leaseClaim) took(lease *coordinationv1.Lease) {
	c.held, c.anew, c.holder = true, false, ""
	c.renewed = metav1.MicroTime{}
	if lease.Spec.RenewTime != nil {
		c.renewed = *lease.Spec.RenewTime
	}
}
