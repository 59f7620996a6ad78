// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
)

// instance is one start of a pod. It stays, ended, until it is deleted.
type instance struct {
	id      string
	pod     *corev1.Pod // never changed, but replaced
	running bool
	foreign bool
}

// containerID is that of each container of the instance.
func (in *instance) containerID() string { return "memory://" + in.id }

// Run starts an instance as CreatePod does, and reports it as running.
func (b *Backend) Run(pod *corev1.Pod) { b.start(pod, false, false) }

// Extra starts an instance behind the controllers' back, and does not report it:
// a second one of a pod that runs, or one of a UID or name that nobody
// asked for. It returns the instance.
func (b *Backend) Extra(pod *corev1.Pod) string { return b.start(pod, true, false) }

// Foreign starts an instance that is somebody else's, and returns it. The pod's
// spec.nodeName should be another node's.
func (b *Backend) Foreign(pod *corev1.Pod) string { return b.start(pod, true, true) }

func (b *Backend) start(pod *corev1.Pod, injected, foreign bool) string {
	kept := pod.DeepCopy()
	kept.Status.Phase = corev1.PodRunning
	kept.Status.PodIP = "10.0.0.1"
	b.mu.Lock()
	b.started++
	in := &instance{id: fmt.Sprintf("i%d", b.started), pod: kept, running: true, foreign: foreign}
	kept.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		kept.Status.ContainerStatuses = append(kept.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, ContainerID: in.containerID(),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: time.Now()}}},
		})
	}
	// What has ended makes room for what takes its name.
	b.instances = slices.DeleteFunc(b.instances, func(old *instance) bool { return !old.running && Key(old.pod) == Key(pod) })
	b.instances = append(b.instances, in)
	b.note(ledger.Start, in, injected)
	b.note(ledger.Status, in, injected)
	b.mu.Unlock()
	if !injected {
		b.tell(kept)
	}
	return in.id
}

// note takes down what became of an instance. It is called with mu held, so that
// the ledger has the order of the changes.
func (b *Backend) note(verb ledger.Verb, in *instance, injected bool) {
	e := ledger.Entry{Verb: verb, UID: in.pod.UID, Namespace: in.pod.Namespace, Name: in.pod.Name, Instance: in.id, Injected: injected, Foreign: in.foreign}
	if verb == ledger.Status {
		if injected {
			return // it is not the pod's
		}
		e.Status = in.pod.Status.DeepCopy()
	}
	b.Recorder.Add(e)
}

// end stops an instance, removes it and reports how it ended, which nobody can ask
// for afterwards. One that has ended before keeps its exit codes.
func (b *Backend) end(in *instance) {
	b.mu.Lock()
	i := slices.Index(b.instances, in)
	if i < 0 {
		b.mu.Unlock()
		return // stopped by another call, or lost
	}
	b.instances = slices.Delete(b.instances, i, i+1)
	ran := in.running
	if ran {
		in.running = false
		b.note(ledger.Stop, in, false)
		in.pod = Ended(in.pod, b.ExitCode)
	}
	last := ran && b.of(Key(in.pod)) == nil
	pod := in.pod
	b.mu.Unlock()
	if last { // the end of an extra instance is not that of the pod; what ended before was told then
		b.tell(pod)
	}
}

// Change changes a pod at the backend and reports it.
func (b *Backend) Change(key string, change func(*corev1.Pod)) {
	b.mu.Lock()
	in := b.of(key)
	if in == nil {
		b.mu.Unlock()
		panic(fmt.Sprintf("the backend has no pod %s", key))
	}
	pod := in.pod.DeepCopy()
	change(pod)
	in.pod = pod
	if ended := terminal(pod); in.running && ended {
		in.running = false
		b.note(ledger.Stop, in, true)
	} else if !in.running && !ended {
		in.running = true
		b.note(ledger.Start, in, true)
	}
	b.note(ledger.Status, in, false)
	b.mu.Unlock()
	b.tell(pod)
}

// Lose forgets a pod without a word, as when somebody else deleted it.
func (b *Backend) Lose(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.instances = slices.DeleteFunc(b.instances, func(in *instance) bool {
		if Key(in.pod) != key {
			return false
		}
		if in.running {
			in.running = false
			b.note(ledger.Stop, in, true)
		}
		return true
	})
}

// of is the instance under a name, the oldest if there are several, nil if there is none. mu is held.
func (b *Backend) of(key string) *instance {
	for _, in := range b.instances {
		if Key(in.pod) == key {
			return in
		}
	}
	return nil
}

// meant is the instance that a call is about. mu is held.
func (b *Backend) meant(pod *corev1.Pod) (found *instance) {
	for _, in := range b.instances {
		switch {
		case Key(in.pod) != Key(pod):
		case slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.ContainerID == in.containerID() }):
			return in
		case found == nil, in.pod.UID == pod.UID && found.pod.UID != pod.UID:
			found = in
		}
	}
	return found
}

// hand is a pod as it is handed out: a copy, with what the backend does not keep
// left out.
func (b *Backend) hand(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	if b.KeepsNoUID {
		pod.UID = ""
	}
	if b.Lossy != nil {
		b.Lossy(pod)
	}
	return pod
}

func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
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

// DropLabels is a Lossy that drops labels and annotations.
func DropLabels(pod *corev1.Pod) { pod.Labels, pod.Annotations = nil, nil }

// RewriteImages is a Lossy that names images in full, as a registry does: with a
// prefix such as docker.io/library/.
func RewriteImages(prefix string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Image = prefix + pod.Spec.Containers[i].Image
		}
		for i := range pod.Status.ContainerStatuses {
			pod.Status.ContainerStatuses[i].Image = prefix + pod.Status.ContainerStatuses[i].Image
		}
	}
}
