// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
)

// instance is one start of a pod. After its end it stays until it is deleted, or for ever.
type instance struct {
	id      string
	pod     *corev1.Pod // never changed, but replaced
	running bool
	hidden  bool // the instance is too new to be shown
	foreign bool
}

// containerID returns the ID of each container of the instance.
func (in *instance) containerID() string { return "memory://" + in.id }

// Run starts an instance as CreatePod does, and reports it as running.
func (b *Backend) Run(pod *corev1.Pod) { b.start(pod, false, false) }

// Extra starts an instance behind the controllers' back, and does not report it: a second instance of a running
// pod, or an instance of an unknown UID or name. It returns the instance.
func (b *Backend) Extra(pod *corev1.Pod) string { return b.start(pod, true, false) }

// Foreign starts an instance of another owner, and returns it. The pod's spec.nodeName should be another node's.
func (b *Backend) Foreign(pod *corev1.Pod) string { return b.start(pod, true, true) }

func (b *Backend) start(pod *corev1.Pod, injected, foreign bool) string {
	b.mu.Lock()
	b.started++
	in := &instance{id: fmt.Sprintf("i%d", b.started), pod: pod.DeepCopy(), running: true, foreign: foreign}
	in.hidden = b.ShowsAfter > 0 && !injected
	if in.hidden {
		in.pod.Status = pendingStatus(pod)
		time.AfterFunc(b.ShowsAfter, func() { b.revealPod(in) })
	} else {
		in.pod.Status = in.runningStatus()
	}
	if !b.KeepsEnded { // an ended instance makes room for a new one of the same name
		b.instances = slices.DeleteFunc(b.instances, func(old *instance) bool { return !old.running && Key(old.pod) == Key(pod) })
	}
	b.instances = append(b.instances, in)
	b.recordChange(ledger.Start, in, injected)
	if !in.hidden { // a hidden instance is unknown
		b.recordChange(ledger.Status, in, injected)
	}
	kept := in.pod
	b.mu.Unlock()
	switch {
	case injected:
	case !in.hidden:
		b.reportPod(kept)
	case b.SaysPending:
		b.deliverReport(kept, b.copyForCaller(kept)) // before all other reports, in whatever order these arrive
	}
	return in.id
}

// recordChange records a change of an instance. The caller holds mu, so that the ledger has the order of the changes.
func (b *Backend) recordChange(verb ledger.Verb, in *instance, injected bool) {
	e := ledger.Entry{Verb: verb, UID: in.pod.UID, Namespace: in.pod.Namespace, Name: in.pod.Name, Instance: in.id, Injected: injected, Foreign: in.foreign}
	if verb == ledger.Status {
		if injected {
			return // the status is not the pod's
		}
		e.Status = in.pod.Status.DeepCopy()
	}
	b.Recorder.Add(e)
}

// endInstance stops an instance and reports how it ended. Unless the backend keeps ended instances, it is unknown
// afterwards. An instance that has ended before keeps its exit codes.
func (b *Backend) endInstance(in *instance) {
	b.mu.Lock()
	i := slices.Index(b.instances, in)
	if i < 0 {
		b.mu.Unlock()
		return // stopped by another call, or lost
	}
	if !b.KeepsEnded {
		b.instances = slices.Delete(b.instances, i, i+1)
	}
	ran := in.running
	if ran {
		in.running = false
		b.recordChange(ledger.Stop, in, false)
		in.pod = Ended(in.pod, b.ExitCode)
	}
	other := b.instanceNamed(Key(in.pod))
	last := ran && (other == nil || !other.running)
	if last && b.KeepsEnded && !in.hidden {
		b.recordChange(ledger.Status, in, in.foreign)
	}
	pod := in.pod
	b.mu.Unlock()
	if last { // the end of an extra instance is not the end of the pod; an earlier end was already reported
		b.reportPod(pod)
	}
}

// Change changes a pod at the backend and reports it.
func (b *Backend) Change(key string, change func(*corev1.Pod)) {
	b.mu.Lock()
	in := b.instanceNamed(key)
	if in == nil {
		b.mu.Unlock()
		panic(fmt.Sprintf("the backend has no pod %s", key))
	}
	pod := in.pod.DeepCopy()
	change(pod)
	in.pod = pod
	if ended := isTerminal(pod); in.running && ended {
		in.running = false
		b.recordChange(ledger.Stop, in, true)
	} else if !in.running && !ended {
		in.running = true
		b.recordChange(ledger.Start, in, true)
	}
	b.recordChange(ledger.Status, in, false)
	b.mu.Unlock()
	b.reportPod(pod)
}

// Lose forgets a pod without a report, as if another client had deleted it.
func (b *Backend) Lose(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.instances = slices.DeleteFunc(b.instances, func(in *instance) bool {
		if Key(in.pod) != key {
			return false
		}
		if in.running {
			in.running = false
			b.recordChange(ledger.Stop, in, true)
		}
		return true
	})
}

// instanceNamed returns the instance under a name: of several instances, the oldest running one, else the last
// started one; nil without an instance. The caller holds mu.
func (b *Backend) instanceNamed(key string) (found *instance) {
	for _, in := range b.instances {
		if Key(in.pod) != key {
			continue
		}
		if in.running {
			return in
		}
		found = in
	}
	return found
}

// meantInstance returns the instance of a call: of several instances of the UID, the oldest running one. A backend that
// keeps no UID finds it by the name alone. The caller holds mu.
func (b *Backend) meantInstance(pod *corev1.Pod) (found *instance) {
	for _, in := range b.instances {
		switch {
		case Key(in.pod) != Key(pod), !b.KeepsNoUID && pod.UID != "" && in.pod.UID != pod.UID:
		case in.running && slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.ContainerID == in.containerID() }):
			return in
		case found == nil, in.pod.UID == pod.UID && (found.pod.UID != pod.UID || in.running && !found.running):
			found = in
		}
	}
	return found
}

// replacePod replaces a kept pod, except for its status, and reports whether the pod exists. With ofUID, the pod
// must have the same UID.
func (b *Backend) replacePod(pod *corev1.Pod, ofUID bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	in := b.meantInstance(pod)
	if in == nil || ofUID && in.pod.UID != pod.UID {
		return false
	}
	kept := pod.DeepCopy()
	kept.Status = in.pod.Status
	in.pod = kept
	return true
}

// copyForCaller returns a copy of a pod for callers, without the parts that the backend does not keep.
func (b *Backend) copyForCaller(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	if b.KeepsNoUID {
		pod.UID = ""
	}
	if b.Lossy != nil {
		b.Lossy(pod)
	}
	return pod
}

// DropLabels is a Lossy that drops labels and annotations.
func DropLabels(pod *corev1.Pod) { pod.Labels, pod.Annotations = nil, nil }

// RewriteImages returns a Lossy that names images in full, as a registry does: with a prefix such as
// docker.io/library/.
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
