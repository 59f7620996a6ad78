// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/lookups"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/openstack"
)

// lookTimeout bounds a request for one container during a list.
const lookTimeout = 15 * time.Second

// driver implements service.Driver for Zun.
type driver struct {
	config  Config
	client  *client
	mapping mapping
	owner   identity.Owner
	kit     *service.Provider[instance]
	lookups *lookups.Lookups[instance]
	logins  *logins
	shells  shellexec.Shells
}

// Refuse implements service.Refuser.
func (d *driver) Refuse(pod *corev1.Pod) error { return d.mapping.refusePod(pod) }

// Identify implements service.Driver.
func (d *driver) Identify(i instance) (poll.Identity, bool) {
	return poll.Identity{Namespace: i.pod.Namespace, Name: i.pod.Name, UID: i.pod.UID, ID: i.UUID, CreatedAt: parseTime(i.CreatedAt)}, i.pod.UID != ""
}

// Status implements service.Driver.
func (d *driver) Status(pod *corev1.Pod, i instance) corev1.PodStatus { return i.podStatus(pod) }

// Ended implements service.Ender.
func (d *driver) Ended(i instance) bool { return i.hasEnded() }

// List implements service.Driver. It also reads some containers one by one, and removes containers and registries that no pod needs.
func (d *driver) List(ctx context.Context) (all []instance, err error) {
	at, named, collections := time.Now(), map[string]bool{}, []string{containers}
	if d.config.Capsules {
		collections = append(collections, capsules)
	}
	for _, collection := range collections {
		err := d.client.eachItem(ctx, collection, nil, func(c container) {
			named[c.Registry] = true
			if i, ours := d.ownedInstance(c, collection == capsules, at); ours {
				all = append(all, i)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for n := range all {
		if err := d.countStarts(ctx, &all[n]); err != nil {
			return nil, err
		}
	}
	if err := d.refreshContainers(ctx, all, at); err != nil {
		return nil, err
	}
	for _, i := range all {
		if i.hasEnded() && i.TaskState == "" && d.isUnwanted(i) {
			d.kit.Leave(i.UUID)
		}
	}
	d.logins.sweepRegistries(ctx, named)
	return all, nil
}

// countStarts sets the restart count of an earlier process's container if the cluster does not have the count.
func (d *driver) countStarts(ctx context.Context, i *instance) error {
	id, _ := d.Identify(*i)
	if _, before, known := d.kit.Cache().Get(id.UID); known && before.UUID == i.UUID {
		i.starts = before.starts
		return nil
	}
	if pod := d.kit.InCluster(id); i.capsule || i.Status == stateCreating || pod != nil && len(pod.Status.ContainerStatuses) > 0 {
		return nil
	}
	starts, err := d.client.listStarts(ctx, i.UUID)
	i.starts = int32(len(starts))
	return err
}

// refreshContainers reads some containers of a list one by one. The list does not show exit codes, and shows an end up to a minute late. The exit
// code of a deleted pod with the restart policy Always is not needed.
func (d *driver) refreshContainers(ctx context.Context, all []instance, at time.Time) error {
	listed := map[string]lookups.Listed{}
	for _, i := range all {
		pod, _, known := d.kit.Cache().Get(i.pod.UID)
		always := known && pod.Spec.RestartPolicy == corev1.RestartPolicyAlways
		switch {
		case i.isUnread():
			listed[i.UUID] = lookups.Listed{Changes: true, Optional: always && pod.DeletionTimestamp != nil}
		case i.Status == stateRunning && i.TaskState == "" && !i.capsule:
			is := lookups.Listed{Since: parseTime(i.CreatedAt), Ends: known && !always}
			if known && len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Running != nil {
				is.Since = pod.Status.ContainerStatuses[0].State.Running.StartedAt.Time // the container may have been restarted
			}
			listed[i.UUID] = is
		}
	}
	err := d.lookups.Refresh(ctx, listed)
	for n := range all {
		i := &all[n]
		if asked := d.lookups.Last(i.UUID); !asked.at.Before(at) {
			i.container, i.at, i.live = asked.container, asked.at, true
		} else if listed[i.UUID].Optional {
			i.live = true // the exit code stays unknown
		}
	}
	return err
}

// isUnwanted reports whether an ended container is no longer needed, because its pod is gone, is deleted, or has another container.
func (d *driver) isUnwanted(i instance) bool {
	id, _ := d.Identify(i)
	pod, current, known := d.kit.Cache().Get(id.UID)
	return d.kit.InCluster(id) == nil || known && (pod.DeletionTimestamp != nil || current.UUID != i.UUID)
}

// ownedInstance returns a container as an instance of this node, or false if it belongs to another node.
func (d *driver) ownedInstance(c container, capsule bool, at time.Time) (instance, bool) {
	pod, ours := d.owner.Owned(c.Labels)
	c.Labels = nil // pod has their values, and the map is no longer needed
	return instance{container: c, pod: pod, capsule: capsule, at: at}, ours
}

// readInstance reads one container, which makes Zun refresh its state. After an error, the state from the list stays, because Zun is slow for
// containers on a host that is down.
func (d *driver) readInstance(ctx context.Context, uuid string) (i instance, settled bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	at := time.Now()
	if c, err := d.client.readContainer(ctx, uuid); err == nil {
		i = instance{container: c, at: at}
	}
	return i, true, nil
}

// Find implements service.Driver.
func (d *driver) Find(ctx context.Context, pod *corev1.Pod) (found instance, is bool, err error) {
	collection, query, at := containers, url.Values{"name": {d.owner.Name(identity.Of(pod))}}, time.Now()
	if isCapsule(pod) {
		collection, query = capsules, nil // a list of capsules has no filter
	}
	err = d.client.eachItem(ctx, collection, query, func(c container) {
		if i, ours := d.ownedInstance(c, isCapsule(pod), at); ours && i.pod.UID == pod.UID && !is {
			found, is = i, true
		}
	})
	return found, is && err == nil, err
}

// Create implements service.Driver.
func (d *driver) Create(ctx context.Context, in *service.Inputs) (made instance, err error) {
	collection, body, err := d.mapping.createRequest(in)
	if err != nil {
		return made, err
	}
	query := url.Values{}
	if collection == containers {
		registry, err := d.logins.useRegistry(ctx, in)
		if err != nil {
			return made, service.NotMade(err)
		}
		defer d.logins.releaseRegistry(registry)
		if query.Set("run", "true"); registry != "" {
			body["registry"] = registry
		}
	}
	at, answer := time.Now(), container{}
	_, err = d.client.call(ctx, "create", http.MethodPost, collection, query, body, &answer)
	switch openstack.StatusOf(err) {
	case 0:
		if openstack.NotSent(err) {
			return made, service.NotMade(err)
		}
		if err == nil && answer.UUID == "" {
			err = errors.New("create: Zun gives no ID: it is looked for")
		}
	case http.StatusNotFound: // Zun accepted the container, and refused it when it looked for the image
		return made, errdefs.InvalidInputf("%s", err.Error())
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotAcceptable, http.StatusTooManyRequests:
		return made, service.NotMade(err)
	}
	answer.Labels = in.Tags
	made, _ = d.ownedInstance(answer, collection == capsules, at)
	return made, err
}

// later is the retry delay if Zun refuses an action in the current state of a container.
const later = 2 * time.Second

// Stop implements service.Driver. It stops a container with its grace period, and removes the container afterwards.
func (d *driver) Stop(ctx context.Context, pod *corev1.Pod, i instance) error {
	if i.capsule {
		_, err := d.client.call(ctx, "delete capsule", http.MethodDelete, capsules+"/"+i.UUID, nil, nil, nil)
		return err
	}
	err := d.endContainer(ctx, pod, i)
	if openstack.StatusOf(err) != http.StatusConflict { // on a conflict, the state of the container differs from the list
		return err
	}
	c, err := d.client.readContainer(ctx, i.UUID)
	if err != nil {
		return err
	}
	i.container, i.at, i.live = c, time.Now(), true
	if err := d.endContainer(ctx, pod, i); err != nil {
		return err
	}
	d.kit.Cache().Take(ctx, i.at, i)
	return nil
}

// endContainer ends a container with the action that its state allows.
func (d *driver) endContainer(ctx context.Context, pod *corev1.Pod, i instance) error {
	switch {
	case i.Status == stateDeleting, i.TaskState == "container_stopping": // a probe or an earlier process may have stopped it
		return nil
	case i.Status == stateRunning:
		return d.haltContainer(ctx, pod, i)
	case i.Status == statePaused:
		if _, err := d.client.requestAction(ctx, i.UUID, "unpause", nil); err != nil {
			return err
		}
		return errdefs.RetryAfter(errors.New("the container was paused, and is let go on to be stopped"), later)
	case i.Status == stateStopped, i.Status == stateCreated, i.hasEnded():
		d.kit.Leave(i.UUID)
		return nil
	}
	return errdefs.RetryAfter(fmt.Errorf("a container that is %s can be neither stopped nor deleted: it is asked again", i.Status), later)
}

// haltContainer stops a running container.
func (d *driver) haltContainer(ctx context.Context, pod *corev1.Pod, i instance) error {
	_, err := d.client.requestAction(ctx, i.UUID, "stop", url.Values{"timeout": {strconv.Itoa(int(podspec.Grace(pod).Seconds()))}})
	return err
}

// Lacking implements service.Prober. Zun supports no probes.
func (d *driver) Lacking(_ *corev1.Pod, c *corev1.Container) service.Probes {
	return service.Probes{Startup: c.StartupProbe, Liveness: c.LivenessProbe, Readiness: c.ReadinessProbe}
}

// End implements service.Prober.
func (d *driver) End(ctx context.Context, of service.Target[instance], _ string) error {
	return d.haltContainer(ctx, of.Pod, of.Instance)
}

// Restart implements service.Restarter. It ends the container, and the node restarts it like any ended container.
func (d *driver) Restart(ctx context.Context, of service.Target[instance], _ string) error {
	return d.haltContainer(ctx, of.Pod, of.Instance)
}

// startedWithin is the time limit of Zun for the start of a container.
const startedWithin = 90 * time.Second

// Start implements service.Starter. The record of the start shows whether the container has run again: its state alone does not show a run that ended
// at once.
func (d *driver) Start(ctx context.Context, _ *corev1.Pod, i instance) (instance, error) {
	id, err := d.client.requestAction(ctx, i.UUID, "start", nil)
	if err != nil {
		return i, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startedWithin, errors.New("start container: Zun has not finished it in time"))
	defer cancel()
	pause := time.NewTicker(cmp.Or(d.config.startPause, time.Second))
	defer pause.Stop()
	for {
		starts, err := d.client.listStarts(ctx, i.UUID)
		if err != nil {
			return i, err
		}
		n := slices.IndexFunc(starts, func(a action) bool { return a.RequestID == id })
		if n < 0 { // a proxy may have dropped the ID
			n = len(starts) - 1
		}
		if n >= 0 && starts[n].FinishTime != "" {
			i.container, err = d.client.readContainer(ctx, i.UUID)
			i.at, i.live = time.Now(), true
			return i, err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return i, context.Cause(ctx)
		}
	}
}

// Remove implements service.Remover: it deletes a container. Zun allows this only in some states.
func (d *driver) Remove(ctx context.Context, uuid string) error {
	_, err := d.client.call(ctx, "delete container", http.MethodDelete, containers+"/"+uuid, nil, nil, nil)
	if openstack.StatusOf(err) == http.StatusConflict {
		return errdefs.RetryAfter(err, time.Minute)
	}
	if err == nil {
		d.kit.Cache().Hurry() // lists confirm the action
	}
	return err
}
