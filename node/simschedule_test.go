// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// simSchedule is one simulation as data: what kind of backend there is, and what
// happens, one thing after the other.
type simSchedule struct {
	Silent     bool          // the provider does not report, it is polled
	KeepsNoUID bool          // the backend drops the UIDs of pods
	NodeName   bool          // live reads are lists of this node's pods
	Lies       bool          // lists may lie; reads of one pod then never fail with an error that a list is to decide
	StopTime   time.Duration // of instances
	ExitCode   int32         // of instances that are stopped
	Steps      []simStep
}

// simStep is one thing that happens, and how much time passes then. What Pod,
// Arg and Of mean depends on what is done; a step that makes no sense when it comes
// does nothing, so that schedules can be shortened anywhere.
type simStep struct {
	Do   string
	Pod  int // which of the names
	Arg  int // 0 to simArgs-1
	Then time.Duration
}

const (
	simPods = 3
	simArgs = 6
)

func (s simStep) String() string {
	return fmt.Sprintf("{%q, %d, %d, %v}", s.Do, s.Pod, s.Arg, s.Then)
}

func (s simSchedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "silent=%v keepsNoUID=%v nodeName=%v lies=%v stopTime=%v exitCode=%d\n", s.Silent, s.KeepsNoUID, s.NodeName, s.Lies, s.StopTime, s.ExitCode)
	for _, step := range s.Steps {
		fmt.Fprintf(&b, "\t%v\n", step)
	}
	return b.String()
}

// restarts reports whether the daemon has more than one life.
func (s simSchedule) restarts() bool {
	return slices.ContainsFunc(s.Steps, func(step simStep) bool {
		return step.Do == "stop" || strings.HasPrefix(step.Do, "crash")
	})
}

// simNames are the names of all steps; those that happen often are there often.
var simNames = func() (names []string) {
	for _, action := range simActions {
		for range action.often {
			names = append(names, action.name)
		}
	}
	return names
}()

// drawSchedule draws a schedule. What is drawn first in each list is the simplest,
// to which rapid shrinks.
func drawSchedule(t *rapid.T) simSchedule {
	step := rapid.Custom(func(t *rapid.T) simStep {
		return simStep{
			Do:   rapid.SampledFrom(simNames).Draw(t, "do"),
			Pod:  rapid.IntRange(0, simPods-1).Draw(t, "pod"),
			Arg:  rapid.IntRange(0, simArgs-1).Draw(t, "arg"),
			Then: rapid.SampledFrom(simPauses).Draw(t, "then"),
		}
	})
	return simSchedule{
		Silent:     rapid.IntRange(0, 3).Draw(t, "silent") == 3,
		KeepsNoUID: rapid.IntRange(0, 5).Draw(t, "keepsNoUID") == 5,
		NodeName:   rapid.Bool().Draw(t, "nodeName"),
		Lies:       rapid.Bool().Draw(t, "lies"),
		StopTime:   rapid.SampledFrom([]time.Duration{0, 0, time.Second, 3 * time.Second}).Draw(t, "stopTime"),
		ExitCode:   int32(rapid.IntRange(0, 1).Draw(t, "exitCode")),
		Steps:      rapid.SliceOfN(step, 1, 25).Draw(t, "steps"),
	}
}

// simPauses are the times that pass between steps: none, a moment, and longer than
// what the controller waits for.
var simPauses = []time.Duration{
	0, 0, 0, time.Millisecond, 300 * time.Millisecond, time.Second, 2500 * time.Millisecond, 11 * time.Second, 45 * time.Second,
}
