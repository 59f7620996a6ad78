// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// life holds everything that determines the state of a pod at a time.
type life struct {
	created  time.Time
	behavior Behavior
	policy   corev1.RestartPolicy
	// stop is set when the pod is deleted.
	stop *stop
}

// stop describes when and how the containers end because the pod is deleted.
type stop struct {
	at       time.Time
	exitCode int32
	// natural is set when the containers end by themselves, or had ended, before
	// the request to stop took effect.
	natural bool
}

// stage is the current activity of the containers of a pod.
type stage int

const (
	creating   stage = iota // not started yet
	running                 // started
	restarting              // exited, waiting for the next run
	exited                  // ended for good
)

// moment is the state of a pod at a time.
type moment struct {
	stage stage
	// run counts the runs of the containers from 0; it is the restart count.
	run int32
	// begun is when the first run began; zero when none did.
	begun time.Time
	// started and finished are the limits of this run. They may lie in the future, and they are zero if there is
	// no limit.
	started, finished time.Time
	// ready is when the containers of this run are ready.
	ready time.Time
	// stopped is set when the request to stop has taken effect.
	stopped bool
	// exitCode is the exit code of this run, if the run ended.
	exitCode int32
	// last is the run before this one, if there was one.
	last *moment
	// next is when the pod looks different; zero for never.
	next time.Time
}

// killed is the exit code of a process ended by SIGKILL.
const killed = 137

// momentAt returns the state of the pod at now.
func (l *life) momentAt(now time.Time) moment {
	if l.stop == nil {
		return l.undisturbedAt(now)
	}
	if now.Before(l.stop.at) {
		m := l.undisturbedAt(now)
		m.next = earlierOf(m.next, l.stop.at)
		return m
	}
	m := l.undisturbedAt(l.stop.at)
	m.stopped, m.next = true, time.Time{}
	if m.stage == exited || l.stop.natural && m.stage == restarting {
		m.stage = exited
		return m
	}
	if m.stage == creating {
		m.exitCode = killed
	} else {
		m.exitCode = l.stop.exitCode
	}
	m.stage, m.finished = exited, l.stop.at
	return m
}

// undisturbedAt is like momentAt, for a pod that is not deleted.
func (l *life) undisturbedAt(now time.Time) moment {
	b := l.behavior
	start := l.created.Add(b.StartDelay.Duration)
	if now.Before(start) {
		return moment{stage: creating, next: start}
	}
	runFor := b.RunFor.Duration
	if runFor == 0 {
		return momentInRun(0, start, time.Time{}, b, now)
	}
	if !l.restartsContainers() {
		return momentInRun(0, start, start.Add(runFor), b, now)
	}
	cycle := runFor + b.restartDelay()
	n := int64(now.Sub(start) / cycle)
	begin := start.Add(time.Duration(n) * cycle)
	m := momentInRun(int32(min(n, 1<<31-1)), begin, begin.Add(runFor), b, now)
	m.begun = start
	if n > 0 {
		last := momentInRun(m.run-1, begin.Add(-cycle), begin.Add(runFor-cycle), b, begin)
		m.last = &last
	}
	if m.stage == exited {
		m.stage, m.next = restarting, begin.Add(cycle)
	}
	return m
}

// momentInRun returns the moment now within the n-th run.
func momentInRun(n int32, started, finished time.Time, b Behavior, now time.Time) moment {
	m := moment{
		stage: running, run: n, begun: started, started: started, finished: finished,
		ready: started.Add(b.ReadyDelay.Duration),
	}
	if now.Before(m.ready) {
		m.next = m.ready
	}
	if finished.IsZero() {
		return m
	}
	m.next = earlierOf(m.next, finished)
	if !now.Before(finished) {
		m.stage, m.exitCode, m.next = exited, b.ExitCode, time.Time{}
	}
	return m
}

// restartsContainers reports whether an exited container is started again.
func (l *life) restartsContainers() bool {
	switch l.policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return l.behavior.ExitCode != 0
	}
	return true
}

// stopContainers makes the containers stop, as asked at now. An earlier request stays in force
// when it ends the pod sooner.
func (l *life) stopContainers(now time.Time, grace time.Duration) {
	m := l.momentAt(now)
	next := stop{at: now.Add(l.behavior.DeleteDelay.Duration), exitCode: l.behavior.StopExitCode}
	if graceEnd := now.Add(grace); graceEnd.Before(next.at) || grace == 0 {
		next = stop{at: graceEnd, exitCode: killed}
	}
	switch {
	case m.stage != running:
		next.at, next.natural = now, m.stage != creating
	case !m.finished.IsZero() && m.finished.Before(next.at):
		next = stop{at: m.finished, exitCode: l.behavior.ExitCode, natural: true}
	}
	if l.stop == nil || next.at.Before(l.stop.at) {
		l.stop = &next
	}
}

// earlierOf returns the earlier of two times, where zero means never.
func earlierOf(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
