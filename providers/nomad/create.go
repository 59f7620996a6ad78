// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Create implements service.Driver. Nomad refuses a second job with the same ID, so Create makes the job, or finds the job of an
// earlier call.
func (d *driver) Create(ctx context.Context, in *service.Inputs) (*instance, error) {
	r, err := d.request(ctx, in)
	if err != nil {
		return nil, service.NotMade(err)
	}
	// Add the entry before the job, so that no event is missed.
	e := &entry{pod: identity.Of(in.Pod), jobID: *r.job.ID, grace: specGrace(in.Pod), hidden: true, submitted: time.Now(), index: math.MaxUint64}
	for _, v := range r.variables {
		e.variables = append(e.variables, v.Path)
	}
	d.store.mu.Lock()
	if there := d.store.pods[in.Pod.UID]; there != nil {
		defer d.store.mu.Unlock()
		if there.hidden {
			return nil, errors.New("the pod is being created")
		}
		return d.store.instance(there), nil // a list has just shown the job
	}
	d.store.add(e)
	d.store.mu.Unlock()
	index, found, err := d.submit(ctx, e, r)
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	switch {
	case err != nil && (!e.sent || final(err)):
		d.store.remove(e)
		return nil, service.NotMade(err)
	case err != nil:
		d.store.remove(e)
		d.listSoon() // the job may exist
		return nil, err
	}
	e.hidden, e.index = false, index
	d.store.touch(e)
	if found { // its events may have passed
		d.listSoon()
	} else {
		d.store.bear(e, index)
	}
	return d.store.instance(e), nil
}

// request returns the objects that Nomad gets for a pod.
func (d *driver) request(ctx context.Context, in *service.Inputs) (request, error) {
	if err := d.waitForPlace(ctx); err != nil {
		return request{}, err
	}
	found, _ := d.found()
	if found.mhz == 0 {
		unready := found.unready(d.config)
		if unready == nil {
			unready = errors.New("they do not tell it")
		}
		return request{}, fmt.Errorf("no client of Nomad says how fast its CPUs are: %w", unready)
	}
	return d.mapping.job(in, found.mhz)
}

// submit creates the Variables and the job of a pod. It returns the index of the job, and whether the job existed already.
func (d *driver) submit(ctx context.Context, e *entry, r request) (index uint64, found bool, err error) {
	var written []string
	for _, v := range r.variables {
		err := d.client.putNew(ctx, v)
		if errors.Is(err, errVariable) { // left by an earlier attempt; if that attempt made the job too, the job needs this version of the Variable
			if index, err := d.jobOf(ctx, e); !errdefs.IsNotFound(err) {
				return index, err == nil, err
			}
			err = d.client.put(ctx, v)
		}
		if err != nil {
			d.withdraw(ctx, written, err)
			return 0, false, err
		}
		written = append(written, v.Path)
	}
	e.sent = true
	index, err = d.client.register(ctx, r.job)
	if errors.Is(err, errExists) {
		index, err := d.jobOf(ctx, e)
		return index, err == nil, err
	}
	if err != nil {
		d.withdraw(ctx, written, err)
	}
	return index, false, err
}

// withdraw removes the Variables of a pod that were just written, after a refusal of its job. If the refusal is
// uncertain, they stay for the next try.
func (d *driver) withdraw(ctx context.Context, written []string, why error) {
	if !final(why) {
		return
	}
	for _, path := range written {
		_ = d.client.removeVariable(ctx, path, 0) // otherwise the sweep removes it
	}
}

// jobOf returns the index of a pod's existing job. If there is none, the error is of the kind not-found.
func (d *driver) jobOf(ctx context.Context, e *entry) (uint64, error) {
	job, err := d.client.job(ctx, e.jobID)
	if err != nil {
		return 0, err
	}
	if m := job.Meta; m[metaUID] != string(e.pod.UID) || m[metaNode] != d.store.owner.node || m[metaCluster] != d.store.owner.cluster {
		return 0, errdefs.InvalidInputf("job %s belongs to another pod: %s/%s", e.jobID, m[metaNamespace], m[metaName])
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	d.store.bear(e, *job.CreateIndex)
	if len(e.variables) == 0 {
		e.variables = strings.Fields(job.Meta[metaVariables])
	}
	return *job.JobModifyIndex, nil
}

// Find implements service.Driver.
func (d *driver) Find(ctx context.Context, pod *corev1.Pod) (*instance, bool, error) {
	e, err := d.adopt(ctx, identity.Of(pod))
	if err != nil {
		if errdefs.IsNotFound(err) {
			err = nil
		}
		return nil, false, err
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	return d.store.instance(e), true, nil
}

// adopt adds the job of a pod that no list has shown, because the answer to its create request was lost. If there is no job, the error
// is of the kind not-found.
func (d *driver) adopt(ctx context.Context, pod identity.Pod) (*entry, error) {
	e := &entry{pod: pod, jobID: d.store.owner.jobID(string(pod.UID)), submitted: time.Now()}
	index, err := d.jobOf(ctx, e)
	switch {
	case errdefs.IsInvalidInput(err): // the job belongs to another pod
		return nil, errdefs.AsNotFound(err)
	case errdefs.IsNotFound(err):
		runs, listErr := d.client.runs(ctx, e.jobID)
		if listErr != nil {
			return nil, listErr
		}
		if !runs {
			return nil, err
		}
		e.stopping, e.purged = true, true // by others
	case err != nil:
		return nil, err
	}
	d.store.mu.Lock()
	if known := d.store.pods[pod.UID]; known != nil {
		e = known
	} else {
		e.index = index
		d.store.add(e) // before the list, so that no event is missed
	}
	d.store.mu.Unlock()
	return e, d.list(ctx) // finds the allocations of the job
}

// Stop implements service.Driver. Every call applies the current grace period of the pod.
func (d *driver) Stop(ctx context.Context, pod *corev1.Pod, i *instance) error {
	d.store.mu.Lock()
	e := d.store.pods[i.pod.UID]
	d.store.mu.Unlock()
	if e == nil {
		var err error
		if e, err = d.adopt(ctx, i.pod); err != nil {
			if errdefs.IsNotFound(err) {
				d.provider.Cache().Forget(i.pod.UID) // Nomad itself confirms that the job does not exist
			}
			return err
		}
	}
	d.store.mu.Lock()
	e.deleted, e.failed = true, failure{} // the failure of another request does not delay the end
	d.store.mu.Unlock()
	return d.stop(ctx, e, time.Now().Add(podspec.Grace(pod)))
}

// stop asks Nomad once to stop a pod. Every call sets killAt.
func (d *driver) stop(ctx context.Context, e *entry, killAt time.Time) error {
	d.store.mu.Lock()
	stopping := e.stopping
	e.asked = true // its event may be faster than the answer
	d.store.mu.Unlock()
	eval, index := "", uint64(0)
	var err error
	if !stopping {
		eval, index, err = d.client.deregister(ctx, e.jobID)
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	e.asked = false
	if err != nil {
		return err
	}
	if !stopping && !e.stopping {
		e.stopping, e.index = true, max(e.index, index) // lists from before do not know the evaluation
		if !e.done(eval) {
			e.stopEval = eval
		}
	}
	if e.killAt.IsZero() || killAt.Before(e.killAt) {
		e.killAt = killAt
	}
	d.store.touch(e)
	return nil
}

// Renew implements service.Renewer. It replaces the tokens in the Variables of a pod, and the clients apply the change. All other
// items of the Variables stay, because the job refers to the items from its creation.
func (d *driver) Renew(ctx context.Context, in *service.Inputs, i *instance) error {
	for _, list := range [][]corev1.Container{in.Pod.Spec.InitContainers, in.Pod.Spec.Containers} {
		for c := range list {
			if err := d.replaceTokens(ctx, variablePath(i.jobID, list[c].Name), &list[c], in.Files); err != nil {
				return err
			}
		}
	}
	return nil
}

// replaceTokens writes the tokens of a container's mounts into its Variable.
func (d *driver) replaceTokens(ctx context.Context, at string, c *corev1.Container, tokens map[string][]podspec.File) error {
	items := map[string]string{}
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		for _, f := range tokens[m.Name] {
			items[itemName(path.Join(secretDir(m), f.Path))] = base64.StdEncoding.EncodeToString(f.Data)
		}
	}
	if len(items) == 0 {
		return nil
	}
	v, err := d.client.variable(ctx, at)
	if err != nil {
		return err
	}
	for item, value := range items {
		if _, ok := v.Items[item]; !ok {
			return fmt.Errorf("the Variable %s has no item %s for a token of container %s", at, item, c.Name)
		}
		v.Items[item] = value
	}
	return d.client.put(ctx, v)
}
