// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"time"

	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// rates has the CPU times of the last measurement.
type rates map[string]*reading

type reading struct {
	at    time.Time
	total uint64
	rate  *uint64
	seen  bool
}

func (r rates) beginRound() {
	for _, last := range r {
		last.seen = false
	}
}

// forgetUnseen forgets containers without a measurement since beginRound.
func (r rates) forgetUnseen() {
	for id, last := range r {
		if !last.seen {
			delete(r, id)
		}
	}
}

// addRate sets the CPU rate in cpu from this reading and the last one, unless cpu already has a rate.
func (r rates) addRate(id string, cpu *statsv1alpha1.CPUStats) {
	if cpu == nil || cpu.UsageCoreNanoSeconds == nil {
		return
	}
	total, at := *cpu.UsageCoreNanoSeconds, cpu.Time.Time
	last := r[id]
	switch {
	case last == nil:
		last = &reading{at: at, total: total}
		r[id] = last
	case total < last.total: // the counter was reset
		*last = reading{at: at, total: total}
	case at.After(last.at):
		now := uint64(float64(total-last.total) / at.Sub(last.at).Seconds())
		*last = reading{at: at, total: total, rate: &now}
	}
	last.seen = true
	if cpu.UsageNanoCores == nil {
		cpu.UsageNanoCores = last.rate
	}
}

// podTotal is the CPU time of a pod whose runtime only reports the CPU times of containers.
type podTotal struct {
	ended uint64            // CPU time of removed containers
	live  map[string]uint64 // CPU time of existing containers
}

// updateTotal records the CPU times of all running containers, and returns the total, which does not fall when a container ends.
func (p *podTotal) updateTotal(live map[string]uint64) uint64 {
	for id, used := range p.live {
		if _, there := live[id]; !there {
			p.ended += used
		}
	}
	p.live = live
	total := p.ended
	for _, used := range live {
		total += used
	}
	return total
}
