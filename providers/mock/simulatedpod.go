// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// simulated is a pod of this provider. provider.mu guards it.
type simulated struct {
	// pod is never changed, only replaced.
	pod     *corev1.Pod
	life    life
	address netip.Addr
	asked   chan struct{} // closed by DeletePod; nil without a waiting caller

	shown shown // the last returned form of pod

	// due is when the next report is to be sent; index is the place in the
	// agenda, or -1.
	due   time.Time
	index int
}

// findPod returns the pod called namespace/name, or nil. A pod that has stopped after DeletePod is found until its
// last report is sent. If nothing receives reports, it is not found. The caller holds provider.mu.
func (p *provider) findPod(namespace, name string, now time.Time) *simulated {
	s := p.pods[podKey(namespace, name)]
	if s != nil && p.reporter == nil && s.life.momentAt(now).stopped {
		p.forgetPod(s)
		return nil
	}
	return s
}

// get is findPod with an error of the kind not-found in the place of nil.
func (p *provider) get(namespace, name string, now time.Time) (*simulated, error) {
	if s := p.findPod(namespace, name, now); s != nil {
		return s, nil
	}
	return nil, notFound(namespace, name)
}

// findContainer returns the pod and its container; both must be there.
func (p *provider) findContainer(namespace, name, container string, now time.Time) (*simulated, *corev1.Container, error) {
	s, err := p.get(namespace, name, now)
	if err != nil {
		return nil, nil, err
	}
	for _, list := range [][]corev1.Container{s.pod.Spec.Containers, s.pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == container {
				return s, &list[i], nil
			}
		}
	}
	return nil, nil, errdefs.NotFoundf("pod %s/%s has no container %q", namespace, name, container)
}

// forgetPod removes a pod and frees its address. A last report that is still due is sent all the same. The caller
// holds provider.mu.
func (p *provider) forgetPod(s *simulated) {
	name := podKey(s.pod.Namespace, s.pod.Name)
	if p.pods[name] != s {
		return
	}
	delete(p.pods, name)
	p.addresses.releaseAddress(s.address)
	if p.reporter == nil {
		p.agenda.planReport(s, time.Time{})
	}
}

// shown records for which period the last returned pod is valid. The zero value is valid for no time.
type shown struct {
	pod         *corev1.Pod
	stop        *stop
	from, until time.Time // until is zero for a form that does not change
}

// isCurrent reports whether the pod looks the same at now.
func (v *shown) isCurrent(s *simulated, now time.Time) bool {
	return v.pod == s.pod && v.stop == s.life.stop && !now.Before(v.from) && (v.until.IsZero() || now.Before(v.until))
}

// podAt returns the pod at now. It returns the previous pod while nothing has changed. The stored pod never
// changes, and callers that hand it out copy it. The caller holds provider.mu.
func (p *provider) podAt(s *simulated, now time.Time) *corev1.Pod {
	if s.shown.isCurrent(s, now) {
		return s.pod
	}
	m := s.life.momentAt(now)
	pod := &corev1.Pod{TypeMeta: s.pod.TypeMeta, ObjectMeta: s.pod.ObjectMeta, Spec: s.pod.Spec}
	pod.Status = statusOf(s.pod, s.life.created, m, p.in.InternalIP, p.podIP(s), now)
	s.pod = pod // in place of the one before: a process may have a hundred thousand pods
	s.shown = shown{pod: pod, stop: s.life.stop, from: now, until: m.next}
	return pod
}

// podIP returns the address of the pod: its own address, or the address of the node if the pod shares the
// network of the node.
func (p *provider) podIP(s *simulated) string {
	if s.address.IsValid() {
		return s.address.String()
	}
	return p.in.InternalIP
}

// assignAddress gives a new pod its address. If the API server shows the pod as started here before this process
// began, the pod keeps its address and age. The caller holds provider.mu.
func (p *provider) assignAddress(s *simulated) (err error) {
	status := &s.pod.Status
	resumed := status.StartTime != nil && len(status.ContainerStatuses) > 0 &&
		strings.HasPrefix(status.ContainerStatuses[0].ContainerID, containerIDScheme)
	if resumed && status.StartTime.Time.Before(s.life.created) {
		s.life.created = status.StartTime.Time
	}
	if s.pod.Spec.HostNetwork {
		return nil
	}
	if resumed {
		if addr, free := p.addresses.claimAddress(status.PodIP); free {
			s.address = addr
			return nil
		}
	}
	s.address, err = p.addresses.takeAddress()
	return err
}
