// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// Plan has the greatest numbers of a run, for paying users.
type Plan struct {
	// Checks is the number of checks.
	Checks int
	// Pods and Containers are the numbers of pods and containers made in all, and AtOnce is the greatest number
	// of pods at one time.
	Pods, Containers, AtOnce int
	// Programs is the run time of the programs in the containers. The time to start and stop the pods comes on
	// top.
	Programs time.Duration
}

// Plan counts the pods of Verify with a provider of this declaration; nil: no declaration. Checks of
// Harness.Extra are not counted.
func (h Harness) Plan(declared *capability.Declaration) (p Plan) {
	h = h.withDefaults()
	for _, k := range h.selectedChecks() {
		if _, except := h.Except[k.Name]; except || k.lackedFeature(declared) != "" {
			continue
		}
		c := costs[k.Name]
		p.Checks++
		pods := c.pods + c.podsOfMany*h.Many
		p.Pods += pods
		p.Containers += c.containers + c.podsOfMany*h.Many
		p.AtOnce = max(p.AtOnce, min(pods, max(c.pods, h.Many)))
		p.Programs += time.Duration(c.ticks) * h.Tick
	}
	return p
}

// cost is the cost of a check with a provider that needs no time to start and stop pods.
type cost struct {
	pods, containers int
	podsOfMany       int // multiples of Harness.Many in addition, each pod with one container
	ticks            int // duration, in units of Harness.Tick
}
