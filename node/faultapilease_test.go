// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// TestFault22LeaseComesBack deletes the lease of a working daemon, or replaces its holder.
func TestFault22LeaseComesBack(t *testing.T) {
	edits := map[string]func(*coordinationv1.Lease){
		"deleted":         nil,
		"holder identity": func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("thief") },
		"holder process":  func(l *coordinationv1.Lease) { l.Annotations[lease.HolderAnnotation] = "thief" },
		"no annotations":  func(l *coordinationv1.Lease) { l.Annotations = nil },
	}
	longest, times := time.Duration(0), 0
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			inTwins(t, func(w *twins) {
				c := &twinChurn{Rand: rand.New(rand.NewPCG(22, 22)), w: w}
				d := w.start("first")
				w.pass(time.Second)
				for range 25 {
					w.leases.change(edit)
					times++
					last := time.Now()
					w.taken("first")
					for end := time.Now().Add(time.Duration(20+c.IntN(10)) * time.Second); time.Now().Before(end); {
						if c.IntN(20) == 0 {
							c.step()
						}
						w.pass(time.Second)
						for _, did := range w.taken("first") {
							if did == "renew" {
								longest, last = max(longest, time.Since(last)), time.Now()
							}
						}
						if gap := time.Since(last); gap > 20*time.Second {
							t.Fatalf("no renewal for %v, want at most 20 s", gap)
						}
					}
					got, err := w.leases.get()
					if err != nil || ptr.Deref(got.Spec.HolderIdentity, "") != testNodeName || got.Annotations[lease.HolderAnnotation] != d.node.lease.holder.claim.Self.Text() {
						t.Fatalf("lease is %+v (%v), want it ours", got, err)
					}
				}
				w.pass(time.Minute)
				w.wantAgreement()
			})
		})
	}
	faultrow.Record(t, 22, fmt.Sprintf("the lease deleted, or another holder or process put on it, %d times in fake time", times),
		"longest time without a renewal %v", longest)
}

// A client that takes the lease like another daemon, and then does nothing, blocks the node for 12 s.
func TestLeaseTakenByNobody(t *testing.T) {
	inTwins(t, func(w *twins) {
		d := w.start("first")
		w.api.Create(bound("p0", "u"))
		w.pass(31 * time.Second)
		w.leases.change(func(l *coordinationv1.Lease) {
			l.Annotations[lease.HolderAnnotation] = "thief"
			l.Spec.RenewTime = ptr.To(metav1.NowMicro())
		})
		w.pass(10 * time.Second)
		w.taken("first")
		if holder, yes := d.node.StandsBy(); !yes || holder != "thief" {
			t.Errorf("it stands by: %v, for %q; want that, for the thief", yes, holder)
		}
		w.api.Create(bound("p1", "v"))
		w.pass(time.Second)
		if did := effects(w.taken("first")); len(did) > 0 {
			t.Errorf("it did %q while another had the lease", did)
		}
		d.awaitActing(14 * time.Second)
		w.pass(10 * time.Second)
		w.wantAgreement()
	})
}
