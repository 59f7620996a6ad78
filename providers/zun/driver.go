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
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/lookups"
)

// lookTimeout bounds a request for one container beside a list.
const lookTimeout = 15 * time.Second

// driver is Zun as the kit asks it.
type driver struct {
	config  Config
	client  *client
	mapping mapping
	owner   identity.Owner
	kit     *service.Provider[instance]
	dial    service.Dial // of port-forward; nil is the network of this process
	lookups *lookups.Lookups[instance]

	mu         sync.Mutex
	stopped    map[string]time.Time // guarded by mu; when Zun accepted to stop containers that are to be removed then
	removed    map[string]removal   // guarded by mu; containers whose deletion Zun has accepted
	starts     map[string]int32     // guarded by mu; how often containers were started again
	registered map[string]bool      // guarded by mu; the names of pods that have a registry, as far as this process knows
	shells     map[string]bool      // guarded by mu; runs of containers that have a shell
}

// removal is an accepted deletion of a container with a name.
type removal struct {
	name string
	at   time.Time
}

// Refuse implements service.Refuser.
func (d *driver) Refuse(pod *corev1.Pod) error { return d.mapping.refuse(pod) }

// Identify implements service.Driver.
func (d *driver) Identify(i instance) (poll.Identity, bool) {
	return poll.Identity{Namespace: i.pod.Namespace, Name: i.pod.Name, UID: i.pod.UID, ID: i.UUID, CreatedAt: parseTime(i.CreatedAt)}, i.pod.UID != ""
}

// Status implements service.Driver.
func (d *driver) Status(pod *corev1.Pod, i instance) corev1.PodStatus { return i.status(pod) }

// Ended implements service.Ender.
func (d *driver) Ended(i instance) bool { return i.ended() }

// List implements service.Driver. It also asks for some containers one by one.
func (d *driver) List(ctx context.Context) (all []instance, err error) {
	at, there, collections := time.Now(), map[string]bool{}, []string{containers}
	if d.config.Capsules {
		collections = append(collections, capsules)
	}
	for _, collection := range collections {
		listed, err := d.client.list(ctx, collection, nil)
		if err != nil {
			return nil, err
		}
		for _, c := range listed {
			there[c.UUID] = true
			if i, ours := d.owned(c, collection == capsules, at); ours {
				all = append(all, i)
			}
		}
	}
	if err := d.count(ctx, all); err != nil {
		return nil, err
	}
	if err := d.refresh(ctx, all, at); err != nil {
		return nil, err
	}
	d.settle(all, there, at)
	return all, nil
}

// refresh asks for some containers of a list one by one. The list does not show how a container has ended, and
// for up to a minute it does not show that the container has ended.
func (d *driver) refresh(ctx context.Context, all []instance, at time.Time) error {
	listed := map[string]lookups.Listed{}
	for _, i := range all {
		switch id, _ := d.Identify(i); {
		case i.unread():
			listed[i.UUID] = lookups.Listed{Changes: true}
		case i.Status == stateRunning && i.TaskState == "" && !i.capsule:
			is := lookups.Listed{Since: parseTime(i.CreatedAt)}
			if pod := d.kit.InCluster(id); pod != nil {
				is.Ends = pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
				if len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Running != nil {
					is.Since = pod.Status.ContainerStatuses[0].State.Running.StartedAt.Time // it may have been started again
				}
			}
			listed[i.UUID] = is
		}
	}
	err := d.lookups.Refresh(ctx, listed)
	for n := range all {
		if asked := d.lookups.Last(all[n].UUID); !asked.at.Before(at) {
			all[n].container, all[n].at, all[n].live = asked.container, asked.at, true
		}
	}
	return err
}

// owned returns a container as an instance of this node, or false if it is not.
func (d *driver) owned(c container, capsule bool, at time.Time) (instance, bool) {
	pod, ours := d.owner.Owned(c.Labels)
	c.Labels = nil // pod has their values, and nobody keeps them
	return instance{container: c, pod: pod, capsule: capsule, at: at}, ours
}

// look asks Zun about one container, so that Zun refreshes the state. After an error, the state from the list
// stays: Zun is slow about containers on a host that is down.
func (d *driver) look(ctx context.Context, uuid string) (i instance, settled bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	at := time.Now()
	if c, err := d.client.get(ctx, uuid); err == nil {
		i = instance{container: c, at: at}
	}
	return i, true, nil
}

// Find implements service.Driver.
func (d *driver) Find(ctx context.Context, pod *corev1.Pod) (instance, bool, error) {
	collection, query, at := containers, url.Values{"name": {d.owner.Name(identity.Of(pod))}}, time.Now()
	if isCapsule(pod) {
		collection, query = capsules, nil // a list of capsules has no filter
	}
	listed, err := d.client.list(ctx, collection, query)
	for _, c := range listed {
		if i, ours := d.owned(c, isCapsule(pod), at); ours && i.pod.UID == pod.UID {
			return i, true, err
		}
	}
	return instance{}, false, err
}

// Create implements service.Driver.
func (d *driver) Create(ctx context.Context, in *service.Inputs) (instance, error) {
	collection, query, capsule := containers, url.Values{"run": {"true"}}, isCapsule(in.Pod)
	var body any
	if capsule {
		template, err := d.mapping.template(in)
		if err != nil {
			return instance{}, err
		}
		collection, query, body = capsules, nil, map[string]any{"template": template}
	} else {
		request, err := d.mapping.container(in)
		if err != nil {
			return instance{}, err
		}
		if request.Registry, err = d.register(ctx, in); err != nil {
			return instance{}, service.NotMade(err)
		}
		body = request
	}
	at := time.Now()
	var made container
	_, err := d.client.call(ctx, "create", http.MethodPost, collection, query, body, &made)
	switch status := statusOf(err); {
	case err == nil && made.UUID == "":
		return instance{}, errors.New("create: Zun gives no ID: it is looked for")
	case status == http.StatusNotFound: // it has been taken, and refused when the image was looked for
		return instance{}, errdefs.InvalidInputf("%s", err.Error())
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotAcceptable, status == http.StatusTooManyRequests:
		return instance{}, service.NotMade(err)
	case err != nil:
		return instance{}, err
	}
	made.Labels = in.Tags
	i, _ := d.owned(made, capsule, at)
	d.know(i)
	return i, nil
}

// know records how often a container was started again.
func (d *driver) know(i instance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.starts[i.UUID] = i.starts
}

// count sets how often each container was started again. It asks Zun about the containers of an earlier process,
// unless the cluster knows the number.
func (d *driver) count(ctx context.Context, all []instance) error {
	d.mu.Lock()
	before := d.starts
	d.starts = map[string]int32{}
	d.mu.Unlock()
	for n := range all {
		i := &all[n]
		id, _ := d.Identify(*i)
		starts, known := before[i.UUID]
		if i.starts = starts; !known && !i.capsule {
			if pod := d.kit.InCluster(id); pod == nil || len(pod.Status.ContainerStatuses) == 0 {
				starts, err := d.client.starts(ctx, i.UUID)
				if err != nil {
					return err
				}
				i.starts = int32(len(starts))
			}
		}
		d.know(*i)
	}
	return nil
}

// settle looks in a list for stopped and deleted containers. It gives up the stopped container of a deleted pod, so
// that it is removed. It deletes a container again that is still there and has ended, because Zun has failed to delete
// it. It gives up the registry of a container that is gone. A list of before a deletion tells nothing about it.
func (d *driver) settle(all []instance, there map[string]bool, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range all {
		_, stopped := d.stopped[i.UUID]
		removed, is := d.removed[i.UUID]
		failed := is && removed.at.Before(at) && i.TaskState == "" && (i.Status == stateError || i.Status == stateStopped)
		if stopped && i.ended() || failed {
			delete(d.stopped, i.UUID)
			delete(d.removed, i.UUID)
			d.kit.Leave(leftContainer + i.UUID + "/" + i.Name)
		}
	}
	for uuid, removed := range d.removed {
		if !there[uuid] {
			delete(d.removed, uuid)
			d.leaveRegistry(removed.name)
		}
	}
	for uuid, at := range d.stopped {
		if !there[uuid] && time.Since(at) > time.Minute { // others have removed it
			delete(d.stopped, uuid)
		}
	}
}

// later is the delay until another try if Zun cannot do something in the present state of a container.
const later = 2 * time.Second

// Stop implements service.Driver. A container is stopped with its grace period, and removed when it has stopped.
func (d *driver) Stop(ctx context.Context, pod *corev1.Pod, i instance) error {
	if i.capsule {
		_, err := d.client.call(ctx, "delete capsule", http.MethodDelete, capsules+"/"+i.UUID, nil, nil, nil)
		return err
	}
	if i.TaskState == "container_stopping" { // a probe or an earlier process may have stopped it
		d.stops(i.UUID)
		return nil
	}
	err := d.stop(ctx, pod, i)
	if statusOf(err) != http.StatusConflict { // else it has another state than the list says
		return err
	}
	c, err := d.client.get(ctx, i.UUID)
	if err != nil {
		return err
	}
	i.container, i.at, i.live = c, time.Now(), true
	if err := d.stop(ctx, pod, i); err != nil {
		return err
	}
	d.kit.Cache().Take(ctx, i.at, i)
	return nil
}

// stop ends a container by the action that its state allows.
func (d *driver) stop(ctx context.Context, pod *corev1.Pod, i instance) error {
	switch {
	case i.Status == stateDeleting:
		return nil
	case i.Status == stateRunning:
		if err := d.halt(ctx, pod, i); err != nil {
			return err
		}
		d.stops(i.UUID)
		return nil
	case i.Status == statePaused:
		if _, err := d.client.do(ctx, i.UUID, "unpause", nil); err != nil {
			return err
		}
		return errdefs.RetryAfter(errors.New("the container was paused, and is let go on to be stopped"), later)
	case i.Status == stateStopped, i.Status == stateCreated, i.ended():
		d.kit.Leave(leftContainer + i.UUID + "/" + i.Name)
		return nil
	}
	return errdefs.RetryAfter(fmt.Errorf("a container that is %s can be neither stopped nor deleted: it is asked again", i.Status), later)
}

// stops records that a container is to be removed when it has stopped.
func (d *driver) stops(uuid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped[uuid] = time.Now()
}

// halt stops a running container.
func (d *driver) halt(ctx context.Context, pod *corev1.Pod, i instance) error {
	_, err := d.client.do(ctx, i.UUID, "stop", url.Values{"timeout": {strconv.Itoa(int(podspec.Grace(pod).Seconds()))}})
	return err
}

// Lacking implements service.Prober: Zun does no probes.
func (d *driver) Lacking(_ *corev1.Pod, c *corev1.Container) service.Probes {
	return service.Probes{Startup: c.StartupProbe, Liveness: c.LivenessProbe, Readiness: c.ReadinessProbe}
}

// End implements service.Prober.
func (d *driver) End(ctx context.Context, of service.Target[instance], _ string) error {
	return d.halt(ctx, of.Pod, of.Instance)
}

// Restart implements service.Restarter. The container ends, and the node starts it again like every ended
// container.
func (d *driver) Restart(ctx context.Context, of service.Target[instance], _ string) error {
	return d.halt(ctx, of.Pod, of.Instance)
}

// Start implements service.Starter. The state of a container cannot distinguish the run before from a run that
// ended at once, but the record of the start can.
func (d *driver) Start(ctx context.Context, _ *corev1.Pod, i instance) (instance, error) {
	id, err := d.client.do(ctx, i.UUID, "start", nil)
	if err != nil {
		return i, err
	}
	pause := time.NewTicker(cmp.Or(d.config.startPause, time.Second))
	defer pause.Stop()
	for begun := time.Now(); time.Since(begun) < callTimeout; {
		starts, err := d.client.starts(ctx, i.UUID)
		if err != nil {
			return i, err
		}
		n := slices.IndexFunc(starts, func(a action) bool { return a.RequestID == id })
		if n < 0 {
			n = len(starts) - 1
		}
		if n >= 0 && starts[n].FinishTime != "" {
			i.starts = int32(len(starts))
			d.know(i)
			i.container, err = d.client.get(ctx, i.UUID)
			i.at, i.live = time.Now(), true
			return i, err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return i, ctx.Err()
		}
	}
	return i, errors.New("start container: Zun has not finished it in time")
}

// Prefixes of the things that a pod leaves behind.
const (
	leftContainer = "container/"
	leftRegistry  = "registry/"
	// leftEarlier stands for the registries that earlier processes have left.
	leftEarlier = "registries"
)

// Remove implements service.Remover. Only some states allow the removal of a container. A registry may be
// removed only if no container names it: Zun fails to read such a container, and every list with it.
func (d *driver) Remove(ctx context.Context, name string) error {
	if name == leftEarlier {
		return d.sweep(ctx)
	}
	if registryName, is := strings.CutPrefix(name, leftRegistry); is {
		return d.unregister(ctx, registryName)
	}
	uuid, of, _ := strings.Cut(strings.TrimPrefix(name, leftContainer), "/")
	_, err := d.client.call(ctx, "delete container", http.MethodDelete, containers+"/"+uuid, nil, nil, nil)
	if err != nil && !errdefs.IsNotFound(err) {
		if statusOf(err) == http.StatusConflict {
			return errdefs.RetryAfter(err, time.Minute)
		}
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removed[uuid] = removal{of, time.Now()}
	d.kit.Cache().Hurry() // lists confirm it
	return err
}

// prefix is the prefix of the registries of this node.
func (d *driver) prefix() string { return "vk-" + identity.Hash(d.owner.Cluster, d.owner.Node) + "-" }

// register makes the registry for the image of a pod, and returns its ID, or "" if the pod needs none. It uses
// the registry of an earlier create.
func (d *driver) register(ctx context.Context, in *service.Inputs) (string, error) {
	wanted, needed := login(in, d.prefix()+in.Name)
	if !needed {
		return "", nil
	}
	if err := d.kit.Keep(ctx, leftRegistry+in.Name); err != nil {
		return "", err
	}
	d.mu.Lock()
	d.registered[in.Name] = true
	d.mu.Unlock()
	have, err := d.client.list(ctx, registries, url.Values{"name": {wanted.Name}})
	if err != nil {
		return "", err
	}
	var made struct{ Registry struct{ UUID string } }
	method, path, action := http.MethodPost, registries, "create registry"
	if len(have) > 0 { // the login may have changed since
		method, path, action = http.MethodPatch, registries+"/"+have[0].UUID, "change registry"
	}
	_, err = d.client.call(ctx, action, method, path, nil, map[string]any{"registry": wanted}, &made)
	return made.Registry.UUID, err
}

// unregister removes the registries of a pod, by the name of its container.
func (d *driver) unregister(ctx context.Context, name string) error {
	left, err := d.client.list(ctx, containers, url.Values{"name": {name}})
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return errdefs.RetryAfter(errdefs.InvalidInputf("container %s, which names the registry, is still there", left[0].UUID), time.Minute)
	}
	have, err := d.client.list(ctx, registries, url.Values{"name": {d.prefix() + name}})
	for _, r := range have {
		if _, failed := d.client.call(ctx, "delete registry", http.MethodDelete, registries+"/"+r.UUID, nil, nil, nil); failed != nil && !errdefs.IsNotFound(failed) {
			return failed
		}
	}
	return err
}

// leaveRegistry gives up the registry of a pod, if there is one, so that it is removed. d.mu is held.
func (d *driver) leaveRegistry(name string) {
	if d.registered[name] {
		delete(d.registered, name)
		d.kit.Leave(leftRegistry + name)
	}
}

// Gone implements service.Mourner.
func (d *driver) Gone(pod *corev1.Pod) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leaveRegistry(d.owner.Name(identity.Of(pod)))
}

// Work implements service.Worker. It looks for registries of earlier processes, until Zun answers. Before that, it
// waits for the containers of creates that are still under way at Zun.
func (d *driver) Work(ctx context.Context) {
	if d.kit.Cache().Wait(ctx) != nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(cmp.Or(d.config.earlierWithin, earlierWithin)):
		d.kit.Leave(leftEarlier)
	}
}

// sweep removes the registries that earlier processes have made for pods that are gone.
func (d *driver) sweep(ctx context.Context) error {
	all, err := d.client.list(ctx, registries, nil)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, known := range d.kit.Cache().Known() {
		there[known.Instance.Name] = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range all {
		name, ours := strings.CutPrefix(r.Name, d.prefix())
		if !ours || d.registered[name] { // a create of this process uses it, and its container may not be there yet
			continue
		}
		if d.registered[name] = true; !there[name] { // Remove looks once more whether a container names it
			d.leaveRegistry(name)
		}
	}
	return nil
}
