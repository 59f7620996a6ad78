// SPDX-License-Identifier: Apache-2.0

// Package memory is a provider in memory for tests of controllers: with
// scripted faults, and a record of every call.
//
// The guarantee: it notices when calls for one pod overlap and when one UID runs twice.
//
// What surprises: a Backend does not report by itself; its Notifying form does.
package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Backend is the provider. Its exported fields are set before it is used. Make
// one with New.
type Backend struct {
	// Fault is asked before a call does anything; method is create, update,
	// delete, get, status or list, key is namespace/name. Script changes it later.
	Fault func(ctx context.Context, method, key string) error
	// StopTime is how long a pod takes to stop; until then GetPod returns it.
	StopTime time.Duration
	// KeepsNoUID drops the UID of the pods it keeps.
	KeepsNoUID bool
	// ExitCode is that of the containers when a pod is stopped.
	ExitCode int32

	mu      sync.Mutex
	pods    map[string]*corev1.Pod // guarded by mu
	notify  func(*corev1.Pod)      // guarded by mu
	calls   []string               // guarded by mu; method key
	inside  map[string]int         // guarded by mu; mutating calls under way, by key
	overlap []string               // guarded by mu; keys whose calls overlapped
	live    map[string]int         // guarded by mu; instances by UID
	doubles []string               // guarded by mu; UIDs that ran twice
}

// Notifying is a Backend with the ability node.PodNotifier.
type Notifying struct{ *Backend }

// NotifyPods remembers whom to report to.
func (b Notifying) NotifyPods(_ context.Context, notify func(*corev1.Pod)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notify = notify
}

// New returns a backend without pods or faults.
func New() *Backend {
	return &Backend{pods: map[string]*corev1.Pod{}, inside: map[string]int{}, live: map[string]int{}}
}

// call records a mutating call and asks for its fault.
func (b *Backend) call(ctx context.Context, method string, pod *corev1.Pod) (leave func(), err error) {
	key := Key(pod)
	b.mu.Lock()
	b.calls = append(b.calls, method+" "+key)
	b.inside[key]++
	if b.inside[key] > 1 {
		b.overlap = append(b.overlap, key)
	}
	b.mu.Unlock()
	leave = func() { b.mu.Lock(); b.inside[key]--; b.mu.Unlock() }
	defer func() {
		if v := recover(); v != nil { // a scripted panic ends the call too
			leave()
			panic(v)
		}
	}()
	return leave, b.ask(ctx, method, key)
}

func (b *Backend) ask(ctx context.Context, method, key string) error {
	b.mu.Lock()
	fault := b.Fault
	b.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(ctx, method, key)
}

// Script sets the faults while the controller runs.
func (b *Backend) Script(fault func(ctx context.Context, method, key string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Fault = fault
}

// CreatePod starts an instance, which runs at once.
func (b *Backend) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	leave, err := b.call(ctx, "create", pod)
	defer leave()
	if err != nil {
		return err
	}
	b.Run(pod)
	return nil
}

// Run starts an instance and reports it as running.
func (b *Backend) Run(pod *corev1.Pod) {
	kept := pod.DeepCopy()
	kept.Status.Phase = corev1.PodRunning
	kept.Status.PodIP = "10.0.0.1"
	for _, c := range pod.Spec.Containers {
		kept.Status.ContainerStatuses = append(kept.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, ContainerID: "memory://" + string(pod.UID),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: time.Now()}}},
		})
	}
	b.mu.Lock()
	if b.live[string(pod.UID)]++; b.live[string(pod.UID)] > 1 {
		b.doubles = append(b.doubles, string(pod.UID))
	}
	if b.KeepsNoUID {
		kept.UID = ""
	}
	b.pods[Key(pod)] = kept
	b.mu.Unlock()
	b.Tell(kept)
}

// Tell reports a pod, if the backend does such things.
func (b *Backend) Tell(pod *corev1.Pod) {
	b.mu.Lock()
	notify := b.notify
	b.mu.Unlock()
	if notify != nil {
		notify(pod.DeepCopy())
	}
}

// Change changes a pod at the backend and reports it.
func (b *Backend) Change(key string, change func(*corev1.Pod)) {
	b.mu.Lock()
	pod := b.pods[key].DeepCopy()
	change(pod)
	b.pods[key] = pod
	b.mu.Unlock()
	b.Tell(pod)
}

// Lose forgets a pod, as when somebody else deleted it.
func (b *Backend) Lose(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.live, string(b.pods[key].UID))
	delete(b.pods, key)
}

// UpdatePod replaces what is kept of the pod and leaves its status.
func (b *Backend) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	leave, err := b.call(ctx, "update", pod)
	defer leave()
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.pods[Key(pod)]
	if old == nil {
		return errdefs.NotFound("no such pod")
	}
	kept := pod.DeepCopy()
	kept.Status = old.Status
	b.pods[Key(pod)] = kept
	return nil
}

// DeletePod stops an instance, at once or after StopTime.
func (b *Backend) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	leave, err := b.call(ctx, "delete", pod)
	defer leave()
	if err != nil {
		return err
	}
	key := Key(pod)
	b.mu.Lock()
	kept := b.pods[key].DeepCopy()
	b.mu.Unlock()
	if kept == nil {
		return errdefs.NotFound("no such pod")
	}
	if b.StopTime == 0 {
		b.end(key, kept)
		return nil
	}
	time.AfterFunc(b.StopTime, func() { b.end(key, kept) })
	return nil
}

// end stops an instance and reports how it ended.
func (b *Backend) end(key string, kept *corev1.Pod) {
	b.mu.Lock()
	if now := b.pods[key]; now != nil && now.UID == kept.UID {
		delete(b.pods, key)
	}
	delete(b.live, string(kept.UID))
	b.mu.Unlock()
	b.Tell(Ended(kept, b.ExitCode))
}

// Ended is a pod whose containers have all ended with the exit code.
func Ended(pod *corev1.Pod, exitCode int32) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Phase = corev1.PodSucceeded
	if exitCode != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		c.Ready = false
		c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, ContainerID: c.ContainerID}}
	}
	return pod
}

// GetPod returns a copy of a pod.
func (b *Backend) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if err := b.ask(ctx, "get", namespace+"/"+name); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if pod := b.pods[namespace+"/"+name]; pod != nil {
		return pod.DeepCopy(), nil
	}
	return nil, errdefs.NotFound("no such pod")
}

// GetPodStatus returns the status of a pod.
func (b *Backend) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	if err := b.ask(ctx, "status", namespace+"/"+name); err != nil {
		return nil, err
	}
	pod, err := b.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns copies of all pods.
func (b *Backend) GetPods(ctx context.Context) (out []*corev1.Pod, err error) {
	if err := b.ask(ctx, "list", ""); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, pod := range b.pods {
		out = append(out, pod.DeepCopy())
	}
	return out, nil
}

// Count returns how often a call was made.
func (b *Backend) Count(call string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.calls {
		if c == call {
			n++
		}
	}
	return n
}

// Calls returns the mutating calls so far, as method and key.
func (b *Backend) Calls() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

// Faults returns what must never happen and did: overlapping calls and second
// instances of one UID.
func (b *Backend) Faults() (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range b.overlap {
		out = append(out, "calls overlapped for "+key)
	}
	for _, uid := range b.doubles {
		out = append(out, "ran twice: "+uid)
	}
	return out
}

// Len returns the number of pods that the backend has.
func (b *Backend) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.pods)
}

// Mute lets a Notifying backend forget whom to report to, as when the daemon is down.
func (b *Backend) Mute() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notify = nil
}

// Key is namespace/name of a pod.
func Key(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// Has returns the backend's pod of the key.
func (b *Backend) Has(key string) *corev1.Pod {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pods[key].DeepCopy()
}

// FailFirst returns a script that fails the first n calls of a method.
func FailFirst(method string, n int) func(context.Context, string, string) error {
	var mu sync.Mutex
	return func(_ context.Context, m, key string) error {
		mu.Lock()
		defer mu.Unlock()
		if m != method || n == 0 {
			return nil
		}
		n--
		return fmt.Errorf("%s of %s: %w", m, key, ErrUnwell)
	}
}

// ErrUnwell is the error of FailFirst.
var ErrUnwell = errors.New("backend is not well")
