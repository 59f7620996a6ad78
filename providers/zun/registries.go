// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// sweepRetry is how often what earlier processes left is looked for until Zun answers.
const sweepRetry = time.Minute

// registered are the names of pods that have a registry, as far as this process knows.
type registered struct {
	mu    sync.Mutex
	names map[string]bool // guarded by mu
}

// prefix is that of the registries of this node.
func (d *driver) prefix() string { return "vk-" + identity.Hash(d.owner.Cluster, d.owner.Node) + "-" }

// register makes the registry that the image of a pod needs, and returns its ID; "" if it needs none. One that is there from a create before is used.
func (d *driver) register(ctx context.Context, in *service.Inputs) (string, error) {
	wanted, needed := login(in, d.prefix()+in.Name)
	if !needed {
		return "", nil
	}
	if err := d.kit.Keep(ctx, leftRegistry+in.Name); err != nil {
		return "", err
	}
	d.note(in.Name)
	have, err := d.registries(ctx, wanted.Name)
	if err != nil {
		return "", err
	}
	var made struct{ Registry registry }
	method, path, action := http.MethodPost, registries, "create registry"
	if len(have) > 0 { // the login may have changed since
		method, path, action = http.MethodPatch, registries+"/"+have[0].UUID, "change registry"
	}
	_, err = d.client.call(ctx, action, method, path, nil, map[string]any{"registry": wanted}, &made)
	return made.Registry.UUID, err
}

func (d *driver) registries(ctx context.Context, name string) ([]registry, error) {
	query := url.Values{}
	if name != "" {
		query.Set("name", name)
	}
	return list(ctx, d.client, registries, query, func(r registry) string { return r.UUID })
}

// unregister removes the registries of a pod, by the name of its container.
func (d *driver) unregister(ctx context.Context, name string) error {
	left, err := list(ctx, d.client, containers, url.Values{"name": {name}}, uuidOf)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return errdefs.RetryAfter(errdefs.InvalidInputf("container %s, which names the registry, is still there", left[0].UUID), time.Minute)
	}
	have, err := d.registries(ctx, d.prefix()+name)
	for _, r := range have {
		if _, failed := d.client.call(ctx, "delete registry", http.MethodDelete, registries+"/"+r.UUID, nil, nil, nil); failed != nil && !errdefs.IsNotFound(failed) {
			return failed
		}
	}
	return err
}

// note takes down that a pod has a registry.
func (d *driver) note(name string) {
	d.registered.mu.Lock()
	defer d.registered.mu.Unlock()
	if d.registered.names == nil {
		d.registered.names = map[string]bool{}
	}
	d.registered.names[name] = true
}

// leaveRegistry lets the registry of a pod be removed, if it has one.
func (d *driver) leaveRegistry(name string) {
	d.registered.mu.Lock()
	defer d.registered.mu.Unlock()
	if d.registered.names[name] {
		delete(d.registered.names, name)
		d.kit.Leave(leftRegistry + name)
	}
}

// Gone implements service.Mourner.
func (d *driver) Gone(pod *corev1.Pod) { d.leaveRegistry(d.owner.Name(identity.Of(pod))) }

// Work implements service.Worker: it looks once for registries that earlier processes have made, and removes those of pods that are gone.
func (d *driver) Work(ctx context.Context) {
	retry := time.NewTicker(sweepRetry)
	defer retry.Stop()
	for ctx.Err() == nil {
		err := d.sweep(ctx)
		if err == nil {
			return
		}
		log.G(ctx).WithError(err).Debug("Registries of earlier processes are not looked for yet")
		select {
		case <-retry.C:
		case <-ctx.Done():
		}
	}
}

func (d *driver) sweep(ctx context.Context) error {
	if err := d.kit.Cache().Wait(ctx); err != nil {
		return err
	}
	all, err := d.registries(ctx, "")
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, known := range d.kit.Cache().Known() {
		there[known.Instance.Name] = true
	}
	for _, r := range all {
		name, ours := strings.CutPrefix(r.Name, d.prefix())
		if !ours {
			continue
		}
		d.note(name)
		if !there[name] { // Remove looks once more whether a container names it
			d.leaveRegistry(name)
		}
	}
	return nil
}
