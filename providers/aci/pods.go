// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// doubtful is how long after its start a provider looks for a group before it creates it: it may have been made before a restart, and
// lists be late.
const doubtful = 2 * time.Minute

// lateCreate is how long after it was asked for a create may still have an effect, when its answer was lost.
const lateCreate = time.Minute

// tried are the pods whose creation was asked for, and whether it had an effect is not known.
type tried struct {
	mu   sync.Mutex
	pods map[types.UID]time.Time // guarded by mu; when it was asked for last
}

func (t *tried) set(uid types.UID, on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pods == nil {
		t.pods = map[types.UID]time.Time{}
	}
	if on {
		t.pods[uid] = time.Now()
	} else {
		delete(t.pods, uid)
	}
}

func (t *tried) has(uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.pods[uid].IsZero()
}

// wait is how long the create of a pod may still have an effect.
func (t *tried) wait(uid types.UID) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(0, lateCreate-time.Since(t.pods[uid]))
}

// CreatePod implements node.PodLifecycleHandler. A group that is there is not made again: the same request would start its containers anew
// if something in it, such as a token, is another one now.
func (p *provider) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if lacks := p.Capabilities().Check(pod); len(lacks) > 0 {
		return errdefs.InvalidInput(capability.Message(lacks))
	}
	if err := p.cache.Wait(ctx); err != nil {
		return err
	}
	if p.cache.Update(pod) {
		return nil
	}
	name := p.owner.Name(identity.Of(pod))
	if p.tried.has(pod.UID) || time.Since(p.started) < doubtful {
		if found, err := p.find(ctx, pod); found || err != nil {
			return err
		}
	}
	r, err := p.resolve(ctx, pod)
	if err != nil {
		return err
	}
	m := p.mapping
	m.secret = p.config.LogAnalytics.WorkspaceKey.Value(ctx)
	group, err := m.group(r)
	if err != nil {
		return err
	}
	p.tried.set(pod.UID, true)
	made, err := p.client.create(ctx, name, group)
	if err != nil {
		if answered(err) { // ACI has said no
			p.tried.set(pod.UID, false)
		}
		return err
	}
	p.tried.set(pod.UID, false)
	p.cache.Accepted(pod, p.groups.made(identity.Of(pod), made))
	return nil
}

// resolve reads all that a pod has from other objects.
func (p *provider) resolve(ctx context.Context, pod *corev1.Pod) (resolved, error) {
	r := resolved{
		pod: pod, containers: map[string]*corev1.Container{}, files: map[string][]podspec.File{}, shares: map[string]*corev1.Secret{},
		secretEnv: map[string]map[string]bool{}, entrypoints: map[string][]string{}, seccomp: map[string]string{},
	}
	var err error
	if p.credentials != nil && len(pod.Spec.ImagePullSecrets) > 0 {
		if r.credentials, err = p.credentials.PullCredentials(ctx, pod); err != nil {
			return r, err
		}
	}
	for kind, list := range map[string][]corev1.Container{"initContainers": pod.Spec.InitContainers, "containers": pod.Spec.Containers} {
		for i := range list {
			name := list[i].Name
			if r.seccomp[name], err = p.config.Seccomp.profileOf(pod, &list[i], field.NewPath("spec", kind).Index(i)); err != nil {
				return r, err
			}
			if len(list[i].Command) == 0 && len(list[i].Args) > 0 {
				if r.entrypoints[name], err = p.entrypoints.of(ctx, list[i].Image, r.credentials); err != nil {
					return r, fmt.Errorf("container %s: %w", name, err)
				}
			}
			if r.containers[name], err = p.objects.Container(ctx, pod, name); err != nil {
				return r, fmt.Errorf("container %s: %w", name, err)
			}
			if r.secretEnv[name], err = p.secretNames(ctx, pod, &list[i]); err != nil {
				return r, fmt.Errorf("container %s: %w", name, err)
			}
		}
	}
	sources := podspec.Sources{Objects: p.objects, Tokens: p.tokens, Allocatable: p.config.Capacity.resources}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		at := field.NewPath("spec", "volumes").Index(i)
		switch {
		case podspec.Written(v):
			if r.files[v.Name], _, err = sources.Files(ctx, pod, v, at); err != nil {
				return r, fmt.Errorf("volume %s: %w", v.Name, err)
			}
		case v.AzureFile != nil, v.CSI != nil:
			share, err := shareOf(v, at)
			if err != nil {
				return r, err
			}
			if r.shares[v.Name], err = p.objects.Secret(ctx, pod, share.secret); err != nil {
				return r, fmt.Errorf("volume %s: %w", v.Name, err)
			}
		}
	}
	return r, nil
}

// secretNames are the variables of a container whose values are of secrets, those that are made of them too.
func (p *provider) secretNames(ctx context.Context, pod *corev1.Pod, c *corev1.Container) (map[string]bool, error) {
	names := map[string]bool{}
	for _, from := range c.EnvFrom {
		if from.SecretRef == nil {
			continue
		}
		s, err := p.objects.Secret(ctx, pod, from.SecretRef.Name)
		if err != nil {
			if from.SecretRef.Optional != nil && *from.SecretRef.Optional {
				continue
			}
			return nil, err
		}
		for key := range s.Data {
			names[from.Prefix+key] = true
		}
	}
	for i := range c.Env {
		e := &c.Env[i]
		names[e.Name] = e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil || e.ValueFrom == nil && mentions(e.Value, names)
	}
	return names, nil
}

// find asks for the group of a pod that lists have not shown yet, and takes it down if it is there.
func (p *provider) find(ctx context.Context, pod *corev1.Pod) (bool, error) {
	group, err := p.client.get(ctx, p.owner.Name(identity.Of(pod)))
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p.tried.set(pod.UID, false)
	p.cache.Accepted(pod, p.groups.made(identity.Of(pod), group))
	return true, nil
}

// UpdatePod implements node.PodLifecycleHandler. Nothing of a group changes while it runs. One that was made just before a restart may not be in
// lists yet, and with no other pod the next list would be long after.
func (p *provider) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	if p.cache.Update(pod) || time.Since(p.started) >= doubtful {
		return nil
	}
	_, err := p.find(ctx, pod)
	return err
}

// DeletePod implements node.PodLifecycleHandler.
func (p *provider) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	if err := p.cache.Wait(ctx); err != nil {
		return err
	}
	_, _, has := p.cache.Get(pod.UID)
	if !has && !p.tried.has(pod.UID) {
		return errdefs.NotFoundf("there is no pod %s/%s with this UID in ACI", pod.Namespace, pod.Name)
	}
	name := p.owner.Name(identity.Of(pod))
	err := p.client.delete(ctx, name)
	if wait := p.tried.wait(pod.UID); errdefs.IsNotFound(err) && wait > 0 {
		return errdefs.RetryAfter(fmt.Errorf("delete pod %s/%s: its create was not answered, and its container group may still come", pod.Namespace, pod.Name), wait)
	}
	if errdefs.IsNotFound(err) {
		p.tried.set(pod.UID, false)
		p.cache.Forget(pod.UID)
		return err
	}
	if err != nil {
		return err
	}
	p.tried.set(pod.UID, false)
	p.groups.stop(name)
	p.cache.Stopping(pod.UID)
	return nil
}

// GetPod implements node.PodLifecycleHandler.
func (p *provider) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if err := p.known(ctx); err != nil {
		return nil, err
	}
	pod, _, err := p.cache.Find(namespace, name)
	return pod, err
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
	if err := p.known(ctx); err != nil {
		return nil, err
	}
	return p.cache.All(), nil
}

// known fails while it is not known which pods ACI has.
func (p *provider) known(ctx context.Context) error {
	if err := p.cache.Wait(ctx); err != nil {
		return err
	}
	err, _ := p.cache.LastError()
	return err
}

// begun is the group of a pod of which a container has begun to run.
func (p *provider) begun(ctx context.Context, namespace, name, container string) (instance, error) {
	if err := p.cache.Wait(ctx); err != nil {
		return instance{}, err
	}
	_, i, err := p.cache.Find(namespace, name)
	if err != nil {
		return i, err
	}
	if has(i, container) == nil {
		return i, errdefs.NotFoundf("pod %s/%s: container %q has not begun", namespace, name, container)
	}
	return i, nil
}

// running is the group of a pod of which a container runs.
func (p *provider) running(ctx context.Context, namespace, name, container string) (instance, error) {
	i, err := p.begun(ctx, namespace, name, container)
	if err == nil && p.ended(i, container) {
		err = errdefs.InvalidInputf("pod %s/%s: container %q does not run", namespace, name, container)
	}
	return i, err
}

// has is what is known of a container; nil for one that is not there, or has not begun.
func has(i instance, container string) *podstatus.Container {
	all := observe(i.group, i.at).Containers
	for n := range all {
		if c := &all[n]; c.Name == container && (c.State != podstatus.Waiting || c.Restarts > 0 || c.Last != nil) {
			return c
		}
	}
	return nil
}

// ended reports whether a container runs no more, and is not started again.
func (p *provider) ended(i instance, container string) bool {
	pod, now, ok := p.cache.Get(i.pod.UID)
	if !ok {
		return true
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	c := has(now, container)
	if c == nil || c.State != podstatus.Exited || c.Run.ExitCode == nil {
		return false
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for n := range list {
			if list[n].Name == container {
				return !podstatus.RestartsAfter(pod, &list[n], *c.Run.ExitCode)
			}
		}
	}
	return false
}
