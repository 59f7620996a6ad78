// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// backend is a provider in memory with faults and a record of its calls. It
// does not report by itself; notifyingBackend does.
type backend struct {
	// faults, by method and pod; asked before the call does anything
	fault func(ctx context.Context, method, key string) error
	// stopTime is how long a pod takes to stop; until then GetPod returns it.
	stopTime time.Duration
	// keepsNoUID drops the UID of the pods it keeps.
	keepsNoUID bool
	// silent backends never report and forget a pod at once when it is deleted.
	silent bool
	// exitCode of the containers when a pod is stopped.
	exitCode int32

	mu      sync.Mutex
	pods    map[string]*corev1.Pod // guarded by mu
	notify  func(*corev1.Pod)      // guarded by mu
	calls   []string               // guarded by mu; method key
	inside  map[string]int         // guarded by mu; mutating calls under way, by key
	overlap []string               // guarded by mu; keys whose calls overlapped
	live    map[string]int         // guarded by mu; instances by UID
	doubles []string               // guarded by mu; UIDs that ran twice
}

type notifyingBackend struct{ *backend }

func (b notifyingBackend) NotifyPods(_ context.Context, notify func(*corev1.Pod)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notify = notify
}

func newBackend() *backend {
	return &backend{pods: map[string]*corev1.Pod{}, inside: map[string]int{}, live: map[string]int{}}
}

// call records a mutating call and asks for its fault.
func (b *backend) call(ctx context.Context, method string, pod *corev1.Pod) (leave func(), err error) {
	key := keyOf(pod)
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

func (b *backend) ask(ctx context.Context, method, key string) error {
	b.mu.Lock()
	fault := b.fault
	b.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(ctx, method, key)
}

// script sets the faults while the controller runs.
func (b *backend) script(fault func(ctx context.Context, method, key string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fault
}

func (b *backend) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	leave, err := b.call(ctx, "create", pod)
	defer leave()
	if err != nil {
		return err
	}
	b.run(pod)
	return nil
}

// run starts an instance and reports it as running.
func (b *backend) run(pod *corev1.Pod) {
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
	if b.keepsNoUID {
		kept.UID = ""
	}
	b.pods[keyOf(pod)] = kept
	b.mu.Unlock()
	b.tell(kept)
}

// tell reports a pod, if the backend does such things.
func (b *backend) tell(pod *corev1.Pod) {
	b.mu.Lock()
	notify := b.notify
	b.mu.Unlock()
	if notify != nil && !b.silent {
		notify(pod.DeepCopy())
	}
}

// change changes a pod at the backend and reports it.
func (b *backend) change(key string, change func(*corev1.Pod)) {
	b.mu.Lock()
	pod := b.pods[key].DeepCopy()
	change(pod)
	b.pods[key] = pod
	b.mu.Unlock()
	b.tell(pod)
}

// lose forgets a pod, as when somebody else deleted it.
func (b *backend) lose(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.live, string(b.pods[key].UID))
	delete(b.pods, key)
}

func (b *backend) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	leave, err := b.call(ctx, "update", pod)
	defer leave()
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.pods[keyOf(pod)]
	if old == nil {
		return errdefs.NotFound("no such pod")
	}
	kept := pod.DeepCopy()
	kept.Status = old.Status
	b.pods[keyOf(pod)] = kept
	return nil
}

func (b *backend) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	leave, err := b.call(ctx, "delete", pod)
	defer leave()
	if err != nil {
		return err
	}
	key := keyOf(pod)
	b.mu.Lock()
	kept := b.pods[key].DeepCopy()
	b.mu.Unlock()
	if kept == nil {
		return errdefs.NotFound("no such pod")
	}
	if b.stopTime == 0 {
		b.end(key, kept)
		return nil
	}
	time.AfterFunc(b.stopTime, func() { b.end(key, kept) })
	return nil
}

// end stops an instance and reports how it ended.
func (b *backend) end(key string, kept *corev1.Pod) {
	b.mu.Lock()
	if now := b.pods[key]; now != nil && now.UID == kept.UID {
		delete(b.pods, key)
	}
	delete(b.live, string(kept.UID))
	b.mu.Unlock()
	b.tell(ended(kept, b.exitCode))
}

// ended is a pod whose containers have all ended with the exit code.
func ended(pod *corev1.Pod, exitCode int32) *corev1.Pod {
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

func (b *backend) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
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

func (b *backend) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	if err := b.ask(ctx, "status", namespace+"/"+name); err != nil {
		return nil, err
	}
	pod, err := b.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

func (b *backend) GetPods(ctx context.Context) (out []*corev1.Pod, err error) {
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

// count returns how often a call was made.
func (b *backend) count(call string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.calls {
		if c == call {
			n++
		}
	}
	return n
}

// wantCalls fails the test unless exactly these mutating calls were made.
func (b *backend) wantCalls(t *testing.T, want ...string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.calls, want) {
		t.Errorf("calls are %q, want %q", b.calls, want)
	}
}

// has returns the backend's pod of the key.
func (b *backend) has(key string) *corev1.Pod {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pods[key].DeepCopy()
}

// failFirst fails the first n calls of a method.
func failFirst(method string, n int) func(context.Context, string, string) error {
	var mu sync.Mutex
	return func(_ context.Context, m, key string) error {
		mu.Lock()
		defer mu.Unlock()
		if m != method || n == 0 {
			return nil
		}
		n--
		return fmt.Errorf("%s of %s: %w", m, key, errBackend)
	}
}

var errBackend = errors.New("backend is not well")
