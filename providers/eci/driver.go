// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"crypto/x509"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1listers "k8s.io/client-go/listers/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
)

// driver implements service.Driver for ECI.
type driver struct {
	config  Config
	client  *client
	groups  *groups
	mapping mapping
	shells  shellexec.Shells // containers with a shell
	roots   *x509.CertPool   // also for sessions; nil means the roots of this machine
	pods    corev1listers.PodLister
	kit     *service.Provider[instance]
}

var (
	_ service.Driver[instance]       = (*driver)(nil)
	_ service.Ender[instance]        = (*driver)(nil)
	_ service.ChangeLister[instance] = (*driver)(nil)
	_ service.LogReader[instance]    = (*driver)(nil)
	_ service.Executor[instance]     = (*driver)(nil)
	_ service.Measurer[instance]     = (*driver)(nil)
	_ service.Prober[instance]       = (*driver)(nil)
	_ service.Restarter[instance]    = (*driver)(nil)
	_ service.Examiner               = (*driver)(nil)
)

// List implements service.Driver.
func (d *driver) List(ctx context.Context) ([]instance, error) { return d.groups.list(ctx) }

// Changed implements service.ChangeLister.
func (d *driver) Changed(ctx context.Context, since time.Time) ([]instance, error) {
	return d.groups.changed(ctx, since)
}

// Identify implements service.Driver.
func (d *driver) Identify(i instance) (poll.Identity, bool) {
	return poll.Identity{Namespace: i.pod.Namespace, Name: i.pod.Name, UID: i.pod.UID, ID: i.status.ContainerGroupID, CreatedAt: i.created}, i.pod.UID != ""
}

// Status implements service.Driver.
func (d *driver) Status(pod *corev1.Pod, i instance) corev1.PodStatus {
	return podstatus.Status(pod, observe(i.seen))
}

// Ended implements service.Ender.
func (d *driver) Ended(i instance) bool { return i.status.ended() }

// Find implements service.Driver.
func (d *driver) Find(ctx context.Context, pod *corev1.Pod) (instance, bool, error) {
	of := identity.Of(pod)
	id, err := d.groups.find(ctx, of)
	if id == "" || err != nil {
		return instance{}, false, err
	}
	return d.made(of, id), true, nil
}

// Create implements service.Driver. A repeated create has the same token, so it gives the same group.
func (d *driver) Create(ctx context.Context, in *service.Inputs) (instance, error) {
	request, err := d.mapping.group(resolved{in})
	if err != nil {
		return instance{}, service.NotMade(err)
	}
	pod := identity.Of(in.Pod)
	d.groups.expect(pod) // before the request: a list may be faster than the answer
	if lost := d.groups.before(in.Pod); lost != "" {
		if i, found, err := d.Find(ctx, in.Pod); found || err != nil {
			return i, err
		}
		request.ClientToken = again(request.ContainerGroupName, lost)
	}
	var answer createAnswer
	err = d.client.call(ctx, "CreateContainerGroup", request, &answer)
	switch {
	case isMismatch(err): // a token or a Secret in the files of the pod has changed since the group was made
		return instance{}, service.AlreadyMade(err)
	case undone(err):
		return instance{}, service.NotMade(err)
	case err == nil && answer.ContainerGroupID == "":
		err = errNoID("CreateContainerGroup")
	}
	if err != nil {
		return instance{}, err
	}
	return d.made(pod, answer.ContainerGroupID), nil
}

// made returns the group that ECI has made for a pod. Only its ID is known.
func (d *driver) made(pod identity.Pod, id string) instance {
	d.groups.isMade(pod, id)
	i := instance{pod: pod}
	i.status.ContainerGroupID, i.status.Name, i.status.Status = id, d.mapping.owner.Name(pod), stateScheduling
	return i
}

// Stop implements service.Driver. The grace period of a group is fixed at its creation.
func (d *driver) Stop(ctx context.Context, _ *corev1.Pod, i instance) error {
	err := d.client.call(ctx, "DeleteContainerGroup", groupRequest{ContainerGroupID: i.status.ContainerGroupID}, nil)
	if err == nil || errdefs.IsNotFound(err) {
		d.groups.deleted(i)
	}
	return err
}

// hasInits reports whether a pod has init containers. An unknown pod may have some.
func (d *driver) hasInits(id identity.Pod) bool {
	pod, _, ok := d.kit.Cache().Get(id.UID)
	if !ok {
		pod = d.kit.InCluster(poll.Identity{Namespace: id.Namespace, Name: id.Name, UID: id.UID})
	}
	return pod == nil || len(pod.Spec.InitContainers) > 0
}

// running returns the groups that run according to the cluster.
func (d *driver) running() (all []running) {
	pods, err := d.pods.List(labels.Everything())
	if err != nil {
		return nil
	}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, s := range pod.Status.ContainerStatuses {
			if group := groupOf(s.ContainerID); group != "" && s.State.Running != nil {
				all = append(all, running{group, s.Name})
				break
			}
		}
	}
	return all
}

// Lacking implements service.Prober.
func (*driver) Lacking(_ *corev1.Pod, c *corev1.Container) service.Probes { return lacking(c) }

// End implements service.Prober. It is never called, because pods that would need it are refused.
func (*driver) End(context.Context, service.Target[instance], string) error {
	return errdefs.InvalidInput("ECI has no operation that ends a group and keeps it")
}

// Restart implements service.Restarter. ECI restarts all containers of a group. So a pod with several containers is refused if this
// node would have to run a startup or liveness probe.
func (d *driver) Restart(ctx context.Context, of service.Target[instance], _ string) error {
	return d.client.call(ctx, "RestartContainerGroup", groupRequest{ContainerGroupID: of.Instance.status.ContainerGroupID}, nil)
}
