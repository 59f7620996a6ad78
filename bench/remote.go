// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// remote has the agent's work beyond its second cluster, or beyond another backend.
type remote struct {
	RunningLagP50Millis float64  `json:"runningLagP50Millis"` // from when the lower pod was seen Running until the upper one was
	RunningLagP99Millis float64  `json:"runningLagP99Millis"`
	GoneLagP50Millis    float64  `json:"goneLagP50Millis"`
	GoneLagP99Millis    float64  `json:"goneLagP99Millis"`
	StartLagP50Millis   float64  `json:"startLagP50Millis,omitempty"` // from the time when the scheduler started the task or job; 0: it does not report this time
	ExitLagP50Millis    float64  `json:"exitLagP50Millis,omitempty"`  // from when containers exited by themselves, while all was at rest, until the pod was seen to have ended
	ExitLagP99Millis    float64  `json:"exitLagP99Millis,omitempty"`
	Unseen              int      `json:"exitsNotSeen,omitempty"` // they count with the time until the wait ended
	Requests            requests `json:"requests"`               // to the lower API server, or to the backend, the time at rest apart
	Pods                float64  `json:"pods"`
	Rest                requests `json:"rest"` // as many as there were at rest

	Left map[string]int `json:"left,omitempty"` // at the emulator of a cloud when all pods are gone, by kind
}

// annotationUpperName is the annotation of a lower pod with the name of the upper pod.
const annotationUpperName = "remote.virtual-kubelet.io/name"

// upperName returns the name that a pod of the lower cluster has in the upper cluster.
func upperName(pod *corev1.Pod) string {
	if name := pod.Annotations[annotationUpperName]; name != "" {
		return name
	}
	return pod.Name
}

// trackPods begins to record when the pods of a life are seen in the lower cluster.
func (l *lower) trackPods(ctx context.Context, life *life) error {
	open := func(version string) (watch.Interface, error) {
		return watchPods(ctx, l.watcher, life.namespace, version)
	}
	w, err := open("")
	if err != nil {
		return fmt.Errorf("of the lower cluster: %w", err)
	}
	life.below = newTracker(life.scenario.Pods)
	go func() { _ = life.below.run(w, open) }() // its callers have a time-out
	return nil
}

// setRemote records the agent's work beyond the lower cluster, if there is one.
func (r *round) setRemote(ctx context.Context, l *life, at marks, up, down phase) error {
	if l.below == nil {
		return nil
	}
	select {
	case <-l.below.allGone: // its watch may lag behind the upper one
	case <-ctx.Done():
		return fmt.Errorf("wait for %d pods of the lower cluster to be seen gone: %w", l.below.goneLeft.Load(), context.Cause(ctx))
	}
	log := l.agent.lower.audit
	if err := log.readNewLines(); err != nil {
		return err
	}
	running, gone := sortedDelays(l.below.running, up.seen), sortedDelays(l.below.gone, down.seen)
	r.Remote = &remote{
		RunningLagP50Millis: inMillis(percentileOf(running, 50)), RunningLagP99Millis: inMillis(percentileOf(running, 99)),
		GoneLagP50Millis: inMillis(percentileOf(gone, 50)), GoneLagP99Millis: inMillis(percentileOf(gone, 99)),
		Requests: log.countRequests(at.begin.at, at.settled.at), Pods: float64(l.scenario.Pods),
		Rest: log.countRequests(at.settled.at, at.rested.at),
	}
	r.Remote.Requests.add(log.countRequests(at.rested.at, at.end.at))
	return nil
}

// sortedDelays returns how much later each pod was seen, ascending.
func sortedDelays(before, after []time.Time) []time.Duration {
	d := make([]time.Duration, len(before))
	for i := range d {
		d[i] = after[i].Sub(before[i])
	}
	slices.Sort(d)
	return d
}

// perPod returns the number of requests to the lower API server for the life of one pod.
func (r *remote) perPod() float64 { return float64(r.Requests.countAll()) / r.Pods }

// toBoth returns the number of requests to both API servers for the life of one pod.
func (r *round) toBoth() float64 {
	return float64(r.Requests.countAll())/r.Remote.Pods + r.Remote.perPod()
}

// listsAtRest returns the number of lists of the lower cluster while there is no work.
func (r *remote) listsAtRest() (n int) {
	for key, count := range r.Rest {
		if strings.HasPrefix(key, "list ") {
			n += count
		}
	}
	return n
}

// systemNames returns the names of the system that runs the pods of the scenario, and of the system that gets the
// requests.
func (s scenario) systemNames() (runs, gets string) {
	if name := backendNames[s.Backend]; name != "" {
		return name, name
	}
	return "the lower cluster", "the lower API server"
}

// remoteMetrics are lines of the table. %s is the system that runs the pods or gets the requests.
var remoteMetrics = []struct {
	label, format string
	of            func(*remote) float64
}{
	{"beyond %s: to Running, median", "%.0f ms", func(r *remote) float64 { return r.RunningLagP50Millis }},
	{"  99th percentile", "%.0f ms", func(r *remote) float64 { return r.RunningLagP99Millis }},
	{"  to gone, median", "%.0f ms", func(r *remote) float64 { return r.GoneLagP50Millis }},
	{"  99th percentile", "%.0f ms", func(r *remote) float64 { return r.GoneLagP99Millis }},
}

// printRemote writes the agents' work beyond a lower cluster.
func (o outcome) printRemote(t io.Writer, agents []string) {
	all, rest := requests{}, requests{}
	for _, name := range agents {
		for _, r := range o.Rounds[name] {
			if r.Remote != nil {
				all.add(r.Remote.Requests)
				rest.add(r.Remote.Rest)
			}
		}
	}
	if len(all) == 0 {
		return
	}
	line := func(label, format string, of func(*remote) float64) {
		fmt.Fprint(t, label)
		for _, name := range agents {
			if rounds := o.Rounds[name]; rounds[0].Remote == nil {
				fmt.Fprint(t, "\t")
			} else {
				fmt.Fprintf(t, "\t"+format, medianOf(rounds, func(r *round) float64 { return of(r.Remote) }))
			}
		}
		fmt.Fprintln(t)
	}
	runs, gets := o.systemNames()
	for _, m := range remoteMetrics {
		line(strings.ReplaceAll(m.label, "%s", runs), m.format, m.of)
	}
	if name := startNames[o.Backend]; name != "" {
		line("  to Running from the start of the "+name+", median", "%.0f ms", func(r *remote) float64 { return r.StartLagP50Millis })
	}
	if o.hasEnds() {
		line("  to the end of one that ends at rest, median", "%.0f ms", func(r *remote) float64 { return r.ExitLagP50Millis })
		line("  99th percentile", "%.0f ms", func(r *remote) float64 { return r.ExitLagP99Millis })
		line("  of 20 not seen within 2 minutes", "%.0f", func(r *remote) float64 { return float64(r.Unseen) })
	}
	if o.hasCells() {
		o.printLine(t, agents, fmt.Sprintf("memory of the agent that %d machines add", o.Pods), "%.1f MiB", func(r *round) float64 { return r.AgentAddedMiB })
	}
	if o.isCloud() {
		line("requests that were refused for their rate", "%.0f", func(r *remote) float64 { return float64(r.countRefused()) })
	}
	left := map[string]bool{}
	for _, name := range agents {
		for _, r := range o.Rounds[name] {
			if r.Remote != nil {
				for kind := range r.Remote.Left {
					left[kind] = true
				}
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(left)) {
		line("left at "+runs+" when all pods are gone: "+strings.ReplaceAll(kind, "-", " "), "%.0f", func(r *remote) float64 { return float64(r.Left[kind]) })
	}
	line("requests to "+gets+" per pod life", "%.2f", (*remote).perPod)
	for _, key := range all.orderedKinds() {
		line("  "+key, "%.2f", func(r *remote) float64 { return float64(r.Requests[key]) / r.Pods })
	}
	if o.Backend != "" {
		o.printLine(t, agents, "  at rest, all in a minute", "%.1f", (*round).restPerMinute)
	}
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		line("  at rest, "+key, "%.0f", func(r *remote) float64 { return float64(r.Rest[key]) })
	}
}
