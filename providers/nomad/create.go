// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// CreatePod implements node.PodLifecycleHandler.
func (p *provider) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	id := p.store.owner.jobID(string(pod.UID))
	p.store.mu.Lock()
	if e := p.store.pods[pod.UID]; e != nil {
		hidden := e.hidden
		p.store.mu.Unlock()
		if hidden {
			return fmt.Errorf("create pod %s/%s: it is being created", pod.Namespace, pod.Name)
		}
		return p.UpdatePod(ctx, pod) // a list may have told of it, without its spec
	}
	// It is there before the job is, so that no event is missed.
	e := &entry{pod: pod.DeepCopy(), jobID: id, hidden: true, submitted: time.Now(), index: math.MaxUint64}
	p.store.add(e)
	p.store.mu.Unlock()
	index, found, err := p.submit(ctx, e)
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	if err != nil {
		p.store.remove(e)
		if e.sent && !final(err) {
			p.listSoon() // it may be there
		}
		return fmt.Errorf("create pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	e.hidden, e.index = false, index
	p.store.touch(e)
	if found { // its events may be over
		p.listSoon()
	} else {
		p.store.bear(e, index)
	}
	return nil
}

// submit makes Variables and job of a pod. It returns the index of the job, and whether it was there already.
func (p *provider) submit(ctx context.Context, e *entry) (index uint64, found bool, err error) {
	r, again, err := p.request(ctx, e.pod)
	if err != nil {
		return 0, false, err
	}
	p.store.mu.Lock()
	for _, v := range r.variables {
		e.variables = append(e.variables, v.Path)
	}
	e.again = again
	p.store.mu.Unlock()
	var written []string
	for _, v := range r.variables {
		err := p.client.putNew(ctx, v)
		if errors.Is(err, errVariable) { // of a try before; if that made the job too, the Variable has what the job refers to
			if index, err := p.found(ctx, e); !errdefs.IsNotFound(err) {
				return index, err == nil, err
			}
			err = p.client.put(ctx, v)
		}
		if err != nil {
			p.withdraw(ctx, written, err)
			return 0, false, err
		}
		written = append(written, v.Path)
	}
	e.sent = true
	index, err = p.client.register(ctx, r.job)
	if errors.Is(err, errExists) {
		index, err := p.found(ctx, e)
		return index, err == nil, err
	}
	if err != nil {
		p.withdraw(ctx, written, err)
	}
	return index, false, err
}

// isOf reports whether a job is that of a pod.
func (p *provider) isOf(job *nomadapi.Job, e *entry) bool {
	return job.Meta[metaUID] == string(e.pod.UID) && job.Meta[metaNode] == p.nodeName && job.Meta[metaCluster] == p.config.ClusterName
}

// found returns the index of the job that a pod has already; an error of the kind not-found says that it has none.
func (p *provider) found(ctx context.Context, e *entry) (uint64, error) {
	job, err := p.client.job(ctx, e.jobID)
	if err != nil {
		return 0, err
	}
	if !p.isOf(job, e) {
		return 0, errdefs.InvalidInputf("job %s belongs to another pod: %s/%s", e.jobID, job.Meta[metaNamespace], job.Meta[metaName])
	}
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	p.store.bear(e, *job.CreateIndex)
	return *job.JobModifyIndex, nil
}

// withdraw removes the Variables of a pod that were just written, as its job was refused. Where nobody knows whether it was, they stay for the
// next try.
func (p *provider) withdraw(ctx context.Context, written []string, why error) {
	if !final(why) {
		return
	}
	for _, path := range written {
		_ = p.client.removeVariable(ctx, path) // else the sweep does
	}
}

// request resolves a pod and maps it.
func (p *provider) request(ctx context.Context, pod *corev1.Pod) (r request, again time.Time, err error) {
	if err := p.wait(ctx, p.known); err != nil {
		return r, again, err
	}
	p.mu.Lock()
	in := resolved{pod: pod, containers: map[string]*corev1.Container{}, files: map[string][]podspec.File{}, mhz: p.place.mhz}
	capacity, unready := p.place.capacity(p.config), p.place.unready(p.config)
	p.mu.Unlock()
	if in.mhz == 0 {
		if unready == nil {
			unready = errors.New("they do not tell it")
		}
		return r, again, fmt.Errorf("no client of Nomad says how fast its CPUs are: %w", unready)
	}
	names := make([]string, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	for i := range pod.Spec.InitContainers {
		names = append(names, pod.Spec.InitContainers[i].Name)
	}
	for i := range pod.Spec.Containers {
		names = append(names, pod.Spec.Containers[i].Name)
	}
	for _, name := range names {
		if in.containers[name], err = p.objects.Container(ctx, pod, name); err != nil {
			return r, again, err
		}
	}
	sources := podspec.Sources{Objects: p.objects, Tokens: p.tokens, Allocatable: func() corev1.ResourceList { return capacity }}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if !podspec.Written(v) {
			continue
		}
		files, renew, err := sources.Files(ctx, pod, v, field.NewPath("spec", "volumes").Index(i))
		if err != nil {
			return r, again, err
		}
		in.files[v.Name] = files
		if again.IsZero() || !renew.IsZero() && renew.Before(again) {
			again = renew
		}
	}
	r, err = p.mapping.job(in)
	return r, again, err
}
