// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// twinChurn makes users and the backend change pods.
type twinChurn struct {
	*rand.Rand
	w    *twins
	uids int
	each func() // called after each step, if it is not nil
}

func (c *twinChurn) step() {
	name := twinPod(c.IntN(8))
	pod := c.w.api.Pod("d", name)
	switch {
	case pod == nil:
		c.uids++
		c.w.api.Create(bound(name, types.UID(fmt.Sprint("u", c.uids))))
	case c.IntN(3) == 0:
		c.w.api.Delete("d", name, int64(c.IntN(3)))
	case c.w.backend.Has("d/"+name) != nil:
		c.w.backend.Change("d/"+name, func(p *corev1.Pod) { p.Status.Message = fmt.Sprint("word ", c.Uint32()) })
	}
}

func (c *twinChurn) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		c.step()
		c.w.pass(time.Duration(100+c.IntN(900)) * time.Millisecond)
		if c.each != nil {
			c.each()
		}
	}
}

// TestFault05TwinsNeverCreateTwice starts a second daemon for the same node, and then ends or disturbs the first one, while pods come and
// go.
func TestFault05TwinsNeverCreateTwice(t *testing.T) {
	rounds := 24
	if faultrow.Strict() {
		rounds = 100
	}
	ends := []string{"killed", "ended", "frozen", "cut off"}
	slowest, creates := map[string]time.Duration{}, 0
	for round := range rounds {
		end := ends[round%len(ends)]
		t.Run(fmt.Sprint(round, end), func(t *testing.T) {
			inTwins(t, func(w *twins) {
				c := &twinChurn{Rand: rand.New(rand.NewPCG(uint64(round), 5)), w: w}
				first := w.start("first")
				c.run(time.Duration(c.IntN(20)) * time.Second)
				second := w.start("second")
				c.run(time.Duration(c.IntN(30)) * time.Second)
				if !first.acts() || second.acts() {
					t.Fatalf("the first acts: %v, the second: %v; want the first to", first.acts(), second.acts())
				}
				switch end {
				case "killed":
					first.crash()
				case "ended":
					first.stop()
				case "frozen":
					first.freeze()
				case "cut off":
					first.part()
				}
				slowest[end] = max(slowest[end], second.awaitActing(15*time.Second))
				c.run(time.Duration(c.IntN(40)) * time.Second)
				first.heal()
				c.run(time.Duration(10+c.IntN(20)) * time.Second)
				if first.acts() || !second.acts() {
					t.Errorf("the first acts: %v, the second: %v; want the second to", first.acts(), second.acts())
				}
				w.pass(2 * time.Minute)
				w.wantAgreement()
				creates += len(w.creates)
			})
		})
	}
	faultrow.Record(t, 5, fmt.Sprintf("%d overlaps of two daemons in fake time; the first is killed, ends, is frozen or cut off", rounds),
		"0 of %d pods created twice; slowest takeover after a kill %v, an end %v, a freeze %v, a cut %v",
		creates, slowest["killed"], slowest["ended"], slowest["frozen"], slowest["cut off"])
}
