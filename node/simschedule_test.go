// SPDX-License-Identifier: Apache-2.0

package node

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// simSchedule is one simulation as data: the kind of backend, and the steps in order.
type simSchedule struct {
	Silent     bool          // the provider does not report, and is polled
	KeepsNoUID bool          // the backend drops the UIDs of pods
	NodeName   bool          // live reads are lists of this node's pods
	Lies       simLies       // which answers may lie
	StopTime   time.Duration // stop time of instances
	ExitCode   int32         // exit code of stopped instances

	KeepsEnded  bool          // the backend keeps ended pods forever
	EndedFirst  bool          // GetPod returns the ended pod first
	PlainErrors bool          // reads of a missing pod return an error without a kind
	ShowsAfter  time.Duration // delay until a new pod is visible
	SaysPending bool          // a hidden pod is reported as Pending at once
	Authority   bool          // the provider is a PodAuthority
	Drains      bool          // the node stops all pods after the steps, while the faults last
	Steps       []simStep
}

// simLies defines which answers may lie.
type simLies int

const (
	noLies simLies = iota
	// listsLie means that reads of one pod are true, or fail without a kind.
	listsLie
	// allLie means that reads of one pod lie like the lists, or fail without a kind, so that the list decides.
	allLie
)

// simStep is one action, and the time that passes after it. The meaning of Pod, Arg and Of depends on the action. An impossible step does
// nothing, so that schedules can be shortened anywhere.
type simStep struct {
	Do   string
	Pod  int // index of the name
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
	fmt.Fprintf(&b, "silent=%v keepsNoUID=%v nodeName=%v lies=%v stopTime=%v exitCode=%d", s.Silent, s.KeepsNoUID, s.NodeName, s.Lies, s.StopTime, s.ExitCode)
	fmt.Fprintf(&b, " keepsEnded=%v endedFirst=%v plainErrors=%v showsAfter=%v saysPending=%v authority=%v drains=%v\n",
		s.KeepsEnded, s.EndedFirst, s.PlainErrors, s.ShowsAfter, s.SaysPending, s.Authority, s.Drains)
	for _, step := range s.Steps {
		fmt.Fprintf(&b, "\t%v\n", step)
	}
	return b.String()
}

// restarts reports whether the daemon has more than one life.
func (s simSchedule) restarts() bool {
	return slices.ContainsFunc(s.Steps, func(step simStep) bool {
		return step.Do == "stop" || strings.HasPrefix(step.Do, "restart") || strings.HasPrefix(step.Do, "crash")
	})
}

// simKind is the kind of schedules: mixed; nouids for backends that keep no UIDs; and, for backends that keep them, second for instances of other UIDs
// that appear under the names of pods, authority for a PodAuthority, drain for a drain in the middle of the faults.
var simKind = flag.String("sim.kind", "mixed", "mixed, nouids, second, authority or drain")

// simNames returns the names of all steps; those that happen often are there often.
func simNames() (names []string) {
	for _, action := range simActions {
		if action.name == simSecond && *simKind != "second" {
			continue
		}
		for range action.often {
			names = append(names, action.name)
		}
	}
	return names
}

// drawSchedule draws a schedule. The first value of each list is the simplest, to which rapid shrinks.
func drawSchedule(t *rapid.T) simSchedule {
	names := simNames()
	step := rapid.Custom(func(t *rapid.T) simStep {
		return simStep{
			Do:   rapid.SampledFrom(names).Draw(t, "do"),
			Pod:  rapid.IntRange(0, simPods-1).Draw(t, "pod"),
			Arg:  rapid.IntRange(0, simArgs-1).Draw(t, "arg"),
			Then: rapid.SampledFrom(simPauses).Draw(t, "then"),
		}
	})
	ended := rapid.IntRange(0, 4).Draw(t, "ended")
	plan := simSchedule{
		Silent:     rapid.IntRange(0, 3).Draw(t, "silent") == 3,
		KeepsNoUID: rapid.IntRange(0, 5).Draw(t, "keepsNoUID") == 5,
		NodeName:   rapid.Bool().Draw(t, "nodeName"),
		Lies:       simLies(rapid.IntRange(0, int(allLie)).Draw(t, "lies")),
		StopTime:   rapid.SampledFrom([]time.Duration{0, 0, time.Second, 3 * time.Second}).Draw(t, "stopTime"),
		ExitCode:   int32(rapid.IntRange(0, 1).Draw(t, "exitCode")),

		KeepsEnded:  ended >= 3,
		EndedFirst:  ended >= 4,
		PlainErrors: rapid.Bool().Draw(t, "plainErrors"),
		ShowsAfter:  rapid.SampledFrom([]time.Duration{0, 0, 0, 0, 5 * time.Second, 20 * time.Second, 45 * time.Second}).Draw(t, "showsAfter"),
		SaysPending: rapid.Bool().Draw(t, "saysPending"),
		Steps:       rapid.SliceOfN(step, 1, 25).Draw(t, "steps"),
	}
	if *simKind != "mixed" {
		plan.KeepsNoUID = *simKind == "nouids"
	}
	plan.Drains = *simKind == "drain"
	if *simKind == "authority" {
		plan.Authority, plan.ShowsAfter, plan.SaysPending = true, 0, false
		if plan.Lies == listsLie {
			plan.Lies = noLies // the answers of a PodAuthority are complete, or it says that they are not
		}
	}
	return plan.possible()
}

// possible removes combinations that no controller can handle, because its observations would be the same as in a case where the opposite
// is correct.
func (s simSchedule) possible() simSchedule {
	if s.KeepsNoUID {
		// An ended pod without a UID may be the waiting pod of its name, and so may a pod that becomes visible after its successor was
		// created.
		s.KeepsEnded, s.EndedFirst, s.ShowsAfter = false, false, 0
	}
	if s.ShowsAfter > 0 && s.restarts() {
		// After a restart, a stopping pod that is not visible yet looks like a stopped pod.
		s.StopTime = 0
	}
	return s
}

// simPauses are the times between steps: none, a moment, and longer than the timeouts of the controller.
var simPauses = []time.Duration{
	0, 0, 0, time.Millisecond, 300 * time.Millisecond, time.Second, 2500 * time.Millisecond, 11 * time.Second, 45 * time.Second,
}
