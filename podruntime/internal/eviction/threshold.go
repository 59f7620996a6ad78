// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Signal is a measured resource of a machine, with its name in the settings of a kubelet.
type Signal string

// Signals.
const (
	MemoryAvailable   Signal = "memory.available"
	NodeFsAvailable   Signal = "nodefs.available"
	NodeFsInodesFree  Signal = "nodefs.inodesFree"
	ImageFsAvailable  Signal = "imagefs.available"
	ImageFsInodesFree Signal = "imagefs.inodesFree"
	PIDAvailable      Signal = "pid.available"
)

// Resource is the resource to reclaim from pods for a signal.
type Resource string

// The resources, as events name them.
const (
	Memory  Resource = "memory"
	Disk    Resource = "ephemeral-storage"
	Inodes  Resource = "inodes"
	Process Resource = "pids"
)

// meaning has the consequences of a signal.
type meaning struct {
	condition corev1.NodeConditionType
	resource  Resource
	// first orders the signals: a lack of memory is the most urgent.
	first int
}

var meanings = map[Signal]meaning{
	MemoryAvailable:   {corev1.NodeMemoryPressure, Memory, 0},
	NodeFsAvailable:   {corev1.NodeDiskPressure, Disk, 1},
	ImageFsAvailable:  {corev1.NodeDiskPressure, Disk, 2},
	NodeFsInodesFree:  {corev1.NodeDiskPressure, Inodes, 3},
	ImageFsInodesFree: {corev1.NodeDiskPressure, Inodes, 4},
	PIDAvailable:      {corev1.NodePIDPressure, Process, 5},
}

// Condition is the condition of the node for a signal, and Resource the resource to reclaim from pods for it.
func (s Signal) Condition() corev1.NodeConditionType { return meanings[s].condition }

// Resource returns the resource to reclaim from pods for a signal.
func (s Signal) Resource() Resource { return meanings[s].resource }

// Threshold is the minimum available amount: Quantity, or Percent of the total.
type Threshold struct {
	Signal   Signal
	Quantity resource.Quantity
	Percent  float64
}

// Least returns the minimum available amount for a capacity.
func (t Threshold) Least(capacity int64) int64 {
	if t.Percent > 0 {
		return int64(float64(capacity) * t.Percent / 100)
	}
	return t.Quantity.Value()
}

// Parse returns the thresholds of a setting such as nodefs.available: 10% or memory.available: 100Mi, in the
// order of their handling. 0 and 0% are no threshold.
func Parse(setting map[string]string) ([]Threshold, error) {
	var list []Threshold
	for _, name := range slices.Sorted(maps.Keys(setting)) {
		t := Threshold{Signal: Signal(name)}
		if _, known := meanings[t.Signal]; !known {
			return nil, fmt.Errorf("threshold %s: want one of %v", name, slices.Sorted(maps.Keys(meanings)))
		}
		var err error
		if percent, is := strings.CutSuffix(setting[name], "%"); is {
			if t.Percent, err = strconv.ParseFloat(percent, 64); err == nil && !(t.Percent >= 0 && t.Percent < 100) {
				err = fmt.Errorf("%q: want 0%% to 100%%", setting[name])
			}
		} else if t.Quantity, err = resource.ParseQuantity(setting[name]); err == nil && t.Quantity.Sign() < 0 {
			err = fmt.Errorf("%q is negative", setting[name])
		}
		if err != nil {
			return nil, fmt.Errorf("threshold %s: %w", name, err)
		}
		if t.Percent > 0 || t.Quantity.Sign() > 0 {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b Threshold) int { return cmp.Compare(meanings[a.Signal].first, meanings[b.Signal].first) })
	return list, nil
}

// Observation is the available amount and the total amount of a resource.
type Observation struct{ Available, Capacity uint64 }

// Observations are the measurements.
type Observations map[Signal]Observation

// Met is a threshold above the available amount.
type Met struct {
	Threshold
	// Least is the required available amount, and Available the actual amount.
	Least, Available resource.Quantity
}

// Met returns the thresholds above the available amounts, in their order.
func (o Observations) Met(thresholds []Threshold) []Met {
	var list []Met
	for _, t := range thresholds {
		seen, measured := o[t.Signal]
		least := t.Least(int64(seen.Capacity)) //nolint:gosec // sizes of machines fit
		if !measured || seen.Capacity == 0 || float64(seen.Available) >= float64(least) {
			continue
		}
		list = append(list, Met{t, t.Signal.eventQuantity(least), t.Signal.eventQuantity(int64(seen.Available))}) //nolint:gosec // sizes of machines fit
	}
	return list
}

// eventQuantity formats an amount like kubelet events.
func (s Signal) eventQuantity(n int64) resource.Quantity {
	if r := s.Resource(); r == Inodes || r == Process {
		return *resource.NewQuantity(n, resource.DecimalSI)
	}
	return *resource.NewQuantity(n, resource.BinarySI)
}

// Message returns the message of an eviction for the threshold.
func (m Met) Message() string {
	return fmt.Sprintf("The node was low on resource: %s. Threshold quantity: %s, available: %s. ", m.Signal.Resource(), m.Least.String(), m.Available.String())
}
