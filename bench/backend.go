// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// backend runs the pods of an agent and is no cluster. It is not measured with the agent.
type backend interface {
	// countRequests counts the agent's requests between two times.
	countRequests(from, to time.Time) (requests, error)
	// podLives returns the backend's times of the pods of a namespace, by their names.
	podLives(ctx context.Context, namespace string) (map[string]lived, error)
	stop()
}

// lived has the start and end times of a pod according to its backend.
type lived struct {
	started      time.Time // its task or job, by the scheduler's clock; zero if unknown
	began, ended time.Time // the source of the pod's status
	exited       time.Time // exited by itself before its deletion; zero: it did not
}

// The names of backends, by scenario.
var backendNames = map[string]string{
	"nomad": "Nomad", "slurm": "Slurm", "interlink": "interLink's server", "aci": "the emulator of ACI", "eci": "the emulator of ECI", "fargate": "the emulator of ECS", "stackpath": "the emulator of StackPath", "zun": "the emulator of Zun", "azurebatch": "the emulator of Azure Batch",
	"kip": "the emulator of EC2", "qemu": "QEMU",
}

// startNames are a scheduler's units of a pod, for schedulers with a report of the start's time.
var startNames = map[string]string{"nomad": "task", "slurm": "job"}

// slowAfter is the time after a change during which an agent may ask its backend more often.
const slowAfter = 20 * time.Second

// setBackend records the agent's requests to its backend, if the backend is no cluster.
func (r *round) setBackend(ctx context.Context, l *life, at marks, up, down phase) error {
	b := l.agent.backend
	if b == nil {
		return nil
	}
	known, err := awaitLives(ctx, b, l.namespace, l.scenario.Pods)
	if err != nil {
		return err
	}
	var first, again requests
	r.Remote = &remote{Pods: float64(l.scenario.Pods)}
	for _, part := range []struct {
		from, to mark
		into     *requests
	}{{at.begin, at.settled, &first}, {at.settled, at.rested, &r.Remote.Rest}, {at.resumed, at.end, &again}} {
		if *part.into, err = b.countRequests(part.from.at, part.to.at); err != nil {
			return err
		}
	}
	first.add(again)
	r.Remote.Requests = first
	r.Remote.setLags(known, up, down)
	r.Remote.setExits(known, l.tracker.ended, at.resumed.at)
	if c, ok := b.(*cloud); ok {
		r.Remote.Left, err = c.countRemaining(ctx)
	}
	return err
}

// awaitLives waits until the backend has the start and the end of each pod.
func awaitLives(ctx context.Context, b backend, namespace string, pods int) ([]lived, error) {
	for {
		known, err := b.podLives(ctx, namespace)
		if err != nil {
			return nil, err
		}
		all, missing := make([]lived, pods), 0
		for i := range all {
			all[i] = known[podName(i)]
			if all[i].began.IsZero() || all[i].ended.IsZero() {
				missing++
			}
		}
		if missing == 0 {
			return all, nil
		}
		if err := waitFor(ctx, 200*time.Millisecond); err != nil {
			return nil, fmt.Errorf("wait until the backend knows when %d pods began and ended: %w", missing, err)
		}
	}
}

// setLags compares the times of the backend with the times at which the pods were seen.
func (r *remote) setLags(known []lived, up, down phase) {
	started, began := make([]time.Time, len(known)), make([]time.Time, len(known))
	var ended, seen []time.Time
	for i, k := range known {
		started[i], began[i] = k.started, k.began
		if k.exited.IsZero() { // for other pods, the backend may already have removed the records
			ended, seen = append(ended, k.ended), append(seen, down.seen[i])
		}
	}
	running, gone := sortedDelays(began, up.seen), sortedDelays(ended, seen)
	r.RunningLagP50Millis, r.RunningLagP99Millis = inMillis(percentileOf(running, 50)), inMillis(percentileOf(running, 99))
	r.GoneLagP50Millis, r.GoneLagP99Millis = inMillis(percentileOf(gone, 50)), inMillis(percentileOf(gone, 99))
	if !started[0].IsZero() {
		r.StartLagP50Millis = inMillis(percentileOf(sortedDelays(started, up.seen), 50))
	}
}

// restPerMinute returns the backend's number of requests per minute at rest.
func (r *round) restPerMinute() float64 {
	if r.Remote == nil || r.Rest == nil {
		return 0
	}
	return float64(r.Remote.Rest.countAll()) / r.Rest.Seconds * 60
}

// ledger counts requests. It is safe for concurrent use.
type ledger struct {
	mu   sync.Mutex
	seen []auditLine // guarded by mu
}

func (l *ledger) recordRequest(at time.Time, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, auditLine{at, key})
}

func (l *ledger) countRequests(from, to time.Time) (requests, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return (&audit{seen: l.seen}).countRequests(from, to), nil
}

// telling is the program of pods at backends with real programs. It writes its beginning and its end into files named after the pod. The
// folder of the files is its first argument. It exits at once on SIGTERM.
const telling = `trap 'printf %s "$EPOCHREALTIME" >"$1/$2.ended"; kill $!; exit 0' TERM; printf %s "$EPOCHREALTIME" >"$1/$2.began"; sleep infinity & wait $!`

// errNoTime means that a text is not a time in seconds.
var errNoTime = errors.New("no time in seconds")

// parseSeconds parses a time such as 1700000000.123456.
func parseSeconds(text string) (time.Time, error) {
	whole, part, _ := strings.Cut(strings.TrimSpace(text), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || len(part) > 9 {
		return time.Time{}, fmt.Errorf("%q: %w", text, errNoTime)
	}
	nanos := int64(0)
	if part != "" {
		if nanos, err = strconv.ParseInt(part+strings.Repeat("0", 9-len(part)), 10, 64); err != nil {
			return time.Time{}, fmt.Errorf("%q: %w", text, errNoTime)
		}
	}
	return time.Unix(n, nanos), nil
}
