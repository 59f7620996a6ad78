// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
)

// syncPatience is how long a question waits for the first list.
const syncPatience = 10 * time.Second

// seenWithin is how long ECI may take until its lists have a group.
const seenWithin = 2 * time.Minute

func (p *provider) newCache() *poll.Cache[instance] {
	return poll.New(poll.Config[instance]{
		List: p.groups.list, Changed: p.groups.changed,
		Identify: func(i instance) (poll.Identity, bool) {
			return poll.Identity{Namespace: i.pod.Namespace, Name: i.pod.Name, UID: i.pod.UID, ID: i.status.ContainerGroupID, CreatedAt: i.created}, i.pod.UID != ""
		},
		Status: func(pod *corev1.Pod, i instance) corev1.PodStatus { return podstatus.Status(pod, observe(i.seen)) },
		Ended:  func(i instance) bool { return i.status.ended() },
		Pod:    p.fromCluster, Had: p.had,
		Double: p.removeDouble,
		Busy:   p.config.busy, Rest: p.config.rest, Idle: p.config.idle, SeenWithin: cmp.Or(p.config.seenWithin, seenWithin),
	})
}

// fromCluster is a pod as the cluster has it; nil if it does not.
func (p *provider) fromCluster(id poll.Identity) *corev1.Pod {
	pod, err := p.pods.Pods(id.Namespace).Get(id.Name)
	if err != nil || pod.UID != id.UID {
		return nil
	}
	return pod
}

// had reports whether the cluster has a pod whose status is of a group.
func (p *provider) had(namespace, name string) bool {
	pod, err := p.pods.Pods(namespace).Get(name)
	return err == nil && pod.Status.StartTime != nil
}

// hasInits reports whether a pod has init containers. One that nobody knows may have some.
func (p *provider) hasInits(id identity.Pod) bool {
	pod, _, ok := p.cache.Get(id.UID)
	if !ok {
		pod = p.fromCluster(poll.Identity{Namespace: id.Namespace, Name: id.Name, UID: id.UID})
	}
	return pod == nil || len(pod.Spec.InitContainers) > 0
}

// removeDouble deletes the second group of a pod.
func (p *provider) removeDouble(ctx context.Context, i instance) {
	l := log.G(ctx).WithField("pod", i.pod.Namespace+"/"+i.pod.Name).WithField("group", i.status.ContainerGroupID)
	l.Warn("The pod has a second group at ECI, which is deleted")
	if err := p.remove(ctx, i); err != nil {
		l.WithError(err).Warn("The second group of a pod cannot be deleted; the next list has it again")
	}
}

// CreatePod implements node.PodLifecycleHandler. A create that is asked again has the same token, so it is the same group.
func (p *provider) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	fail := func(err error) error { return fmt.Errorf("create pod %s/%s: %w", pod.Namespace, pod.Name, err) }
	if err := p.wait(ctx); err != nil { // a token is known for a while only
		return fail(err)
	}
	if p.cache.Update(pod) {
		return nil // a list told of it
	}
	r, err := p.resolve(ctx, pod)
	if err != nil {
		return fail(err)
	}
	request, err := p.mapping.group(r)
	if err != nil {
		return fail(err)
	}
	of := identity.Of(pod)
	p.groups.expect(of) // before ECI has it: a list may be faster than the answer
	id, err := p.create(ctx, pod, request)
	if err != nil {
		return fail(without(err, request.secrets()))
	}
	p.groups.isMade(of, id)
	p.cache.Accepted(pod, p.instance(of, id, stateScheduling))
	return nil
}

// create makes the group of a pod, or finds it.
func (p *provider) create(ctx context.Context, pod *corev1.Pod, request createRequest) (id string, err error) {
	of := identity.Of(pod)
	if lost := p.groups.before(pod); lost != "" {
		if id, err := p.groups.find(ctx, of); id != "" || err != nil {
			return id, err
		}
		request.ClientToken = again(request.ContainerGroupName, lost)
	}
	var answer createAnswer
	err = p.client.call(ctx, "CreateContainerGroup", request, &answer)
	switch {
	case isMismatch(err): // The create before went well, and a token or a Secret in its files is another one by now.
		id, err = p.groups.find(ctx, of)
		if id == "" && err == nil {
			err = fmt.Errorf("CreateContainerGroup: ECI knows the create of group %s, and does not show the group: look at the right eci:DescribeContainerGroups", request.ContainerGroupName)
		}
		return id, err
	case err == nil && answer.ContainerGroupID == "":
		err = errNoID("CreateContainerGroup")
	}
	return answer.ContainerGroupID, err
}

// instance is a group of which nothing but its ID is known.
func (p *provider) instance(pod identity.Pod, id, state string) instance {
	i := instance{pod: pod}
	i.status.ContainerGroupID, i.status.Name, i.status.Status = id, p.mapping.owner.Name(pod), state
	return i
}

// isMismatch reports whether ECI knows the token of a create, with another request.
func isMismatch(err error) bool {
	var said *apiError
	return errors.As(err, &said) && strings.HasPrefix(said.Code, "Idempotent")
}

// UpdatePod implements node.PodLifecycleHandler: it remembers the pod. A group does not change.
func (p *provider) UpdatePod(_ context.Context, pod *corev1.Pod) error {
	p.cache.Update(pod)
	return nil
}

// DeletePod implements node.PodLifecycleHandler. The pod is there until lists lack it, or it has ended. ECI gives it the grace period that it
// was created with.
func (p *provider) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	fail := func(err error) error { return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err) }
	if err := p.wait(ctx); err != nil {
		return fail(err)
	}
	_, i, ok := p.cache.Get(pod.UID)
	if !ok { // a create whose answer was lost may not be in lists yet
		of := identity.Of(pod)
		id, err := p.groups.find(ctx, of)
		if err != nil {
			return fail(err)
		}
		if id == "" || p.groups.wasDeleted(id) {
			return errdefs.NotFoundf("pod %s/%s is not at ECI", pod.Namespace, pod.Name)
		}
		i = p.instance(of, id, stateTerminating)
	}
	if err := p.remove(ctx, i); err != nil {
		return fail(err)
	}
	if !ok {
		p.cache.Accepted(pod, i)
	}
	p.cache.Stopping(pod.UID)
	return nil
}

// remove deletes a group; one that is gone is no error.
func (p *provider) remove(ctx context.Context, i instance) error {
	err := p.client.call(ctx, "DeleteContainerGroup", deleteRequest{ContainerGroupID: i.status.ContainerGroupID}, nil)
	if errdefs.IsNotFound(err) {
		err = nil
	}
	if err == nil {
		p.groups.deleted(i)
	}
	return err
}

// GetPod implements node.PodLifecycleHandler.
func (p *provider) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod, _, err := p.find(ctx, namespace, name)
	return pod, err
}

// find is the pod of a name, with its group.
func (p *provider) find(ctx context.Context, namespace, name string) (*corev1.Pod, instance, error) {
	if err := p.wait(ctx); err != nil {
		return nil, instance{}, fmt.Errorf("get pod %s/%s: %w", namespace, name, err)
	}
	return p.cache.Find(namespace, name)
}

// GetPodStatus implements node.PodLifecycleHandler.
func (p *provider) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods implements node.PodLifecycleHandler.
func (p *provider) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	if err := p.wait(ctx); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return p.cache.All(), nil
}

// wait returns when the pods from before a restart are known, or why they are not.
func (p *provider) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	return p.cache.Wait(ctx)
}
