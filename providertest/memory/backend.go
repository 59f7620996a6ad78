// SPDX-License-Identifier: Apache-2.0

// Package memory is a provider in memory for tests of controllers, and for tests of code on top of a provider:
// with faults as data, and a ledger of everything that happened.
//
// A fault of a call is a Fault, given to Inject. A Lie is a false answer of lists, and Reports is how reports
// arrive. Extra, Foreign and Lose change the backend behind the controllers' back. Heal ends all faults. Fields
// such as KeepsEnded, ShowsAfter and PlainErrors set the kind of backend, in the ways in which the backends of
// the field differ.
//
// The guarantee: every call, every start and stop of an instance and every report is in the ledger, in the order
// in which it happened, so the invariants of package ledger can be judged. Each start has an instance of its
// own, which also shows in the container IDs. A call that overlaps another call for the same pod is recorded.
//
// Note: a Backend does not report by itself; its Notifying form does. And it does not tell a second
// CreatePod for the same UID from the first, unless it is Idempotent: it starts a second instance, because tests
// must find that mistake. The contract of providers does not run on it: its instances run no program, so they
// print nothing and end as they are told. The contract runs on the in-memory provider of package inprocess.
package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
)

// Backend is the provider. Set its exported fields before its use. Make it with New.
type Backend struct {
	// Fault is called before a call does anything, for scripts that a Fault cannot express; method is one of the
	// Methods, key is namespace/name. Script changes it later.
	Fault func(ctx context.Context, method, key string) error
	// StopTime is the time that a pod takes to stop; until then GetPod returns it.
	StopTime time.Duration
	// KeepsNoUID drops the UID of returned pods.
	KeepsNoUID bool
	// Lossy, if it is set, changes each returned or reported copy of a pod, as backends do that lose parts of a
	// pod. See DropLabels and RewriteImages.
	Lossy func(pod *corev1.Pod)
	// ExitCode is the exit code of the containers when a pod is stopped.
	ExitCode int32
	// KeepsEnded keeps ended pods for ever, also after DeletePod and beside a new pod of the same name, as
	// clouds list stopped tasks for hours. Of several pods of a name, GetPod returns a running pod.
	KeepsEnded bool
	// EndedFirst makes GetPod return the oldest pod of a name, although it has ended and another pod runs: a
	// backend that finds pods by name may do this.
	EndedFirst bool
	// ShowsAfter is the delay after CreatePod until GetPod, GetPodStatus, GetPods and reports show the pod. It
	// is Pending until then.
	ShowsAfter time.Duration
	// SaysPending reports a pod that ShowsAfter hides as Pending at once.
	SaysPending bool
	// PlainErrors makes GetPod and GetPodStatus of an unknown pod return an error without a kind.
	PlainErrors bool
	// Idempotent treats a second CreatePod for a known UID as an UpdatePod, as PodLifecycleHandler requires:
	// nothing starts.
	Idempotent bool
	// Recorder records the history. New makes a Recorder.
	Recorder *ledger.Recorder

	mu        sync.Mutex
	instances []*instance       // guarded by mu; the list of GetPods, oldest first
	started   int               // guarded by mu
	notify    func(*corev1.Pod) // guarded by mu
	reports   Reports           // guarded by mu
	held      []*corev1.Pod     // guarded by mu; reports that wait to be reordered
	calls     []string          // guarded by mu; method key
	inside    map[string]int    // guarded by mu; mutating calls under way, by key
	overlap   []string          // guarded by mu; keys with overlapping calls
	faults    []*Fault          // guarded by mu
	lies      []*Lie            // guarded by mu
	healed    chan struct{}     // guarded by mu; closed by Heal, nil: no waiter
}

// New returns a backend without pods or faults.
func New() *Backend {
	return &Backend{Recorder: &ledger.Recorder{}, inside: map[string]int{}}
}

// makeCall makes a mutating call: it records the call, checks for overlaps, injects faults and performs the effect.
func (b *Backend) makeCall(ctx context.Context, method string, pod *corev1.Pod, effect func() error) (err error) {
	key := Key(pod)
	entry := ledger.Entry{Verb: ledger.Verb(method), Step: ledger.Begin, UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}
	b.mu.Lock()
	if in := b.meantInstance(pod); in != nil && method == Delete && in.running {
		entry.Instance = in.id
	}
	b.calls = append(b.calls, method+" "+key)
	b.inside[key]++
	if b.inside[key] > 1 {
		b.overlap = append(b.overlap, key)
	}
	b.mu.Unlock()
	b.Recorder.Add(entry)
	defer func() {
		v := recover()
		entry.Step = ledger.End
		switch {
		case v != nil:
			entry.Err = fmt.Sprint("panic: ", v)
		case err != nil:
			entry.Err, entry.Rejected = err.Error(), errdefs.IsInvalidInput(err)
		}
		b.Recorder.Add(entry)
		b.mu.Lock()
		b.inside[key]--
		b.mu.Unlock()
		if v != nil { // a panic ends the call too
			panic(v)
		}
	}()
	lost, err := b.injectFault(ctx, method, key, pod.UID)
	if err != nil {
		return err
	}
	if err := effect(); err != nil {
		return err
	}
	return lost
}

// CreatePod starts an instance, which runs at once.
func (b *Backend) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	return b.makeCall(ctx, Create, pod, func() error {
		if !b.Idempotent || !b.replacePod(pod, true) {
			b.start(pod, false, false)
		}
		return nil
	})
}

// UpdatePod replaces the kept pod except for its status.
func (b *Backend) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	return b.makeCall(ctx, Update, pod, func() error {
		if !b.replacePod(pod, false) {
			return errdefs.NotFound("no such pod")
		}
		return nil
	})
}

// DeletePod stops an instance of the pod, at once or after StopTime: the instance with the container IDs in the
// pod's status, if it has any.
func (b *Backend) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	return b.makeCall(ctx, Delete, pod, func() error {
		b.mu.Lock()
		in, l := b.meantInstance(pod), b.currentLie()
		denied := l != nil && l.Deletes && b.isDenied(l, Key(pod))
		b.mu.Unlock()
		switch {
		case in == nil || denied:
			return errdefs.NotFound("no such pod")
		case b.StopTime == 0:
			b.endInstance(in)
		default:
			time.AfterFunc(b.StopTime, func() { b.endInstance(in) })
		}
		return nil
	})
}

// GetPod returns a copy of a pod.
func (b *Backend) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return b.read(ctx, Get, namespace+"/"+name)
}

// GetPodStatus returns the status of a pod.
func (b *Backend) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := b.read(ctx, Status, namespace+"/"+name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// Ping answers a NodeController whether the backend is healthy.
func (b *Backend) Ping(ctx context.Context) error {
	lost, err := b.injectFault(ctx, Ping, "", "")
	if err != nil {
		return err
	}
	return lost
}

// Key returns namespace/name of a pod.
func Key(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
