// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/jsonfile"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/pack"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// identityOf returns the content of a job's comment.
func (d *driver) identityOf(pod *corev1.Pod) identity {
	return identity{d.config.ClusterName, d.in.Node.Name, pod.Namespace, pod.Name, pod.UID}
}

// Create implements service.Driver. If the directory exists, an earlier process may have submitted the job, so
// Create looks for that job. If a pod has two jobs, only one of them runs it.
func (d *driver) Create(ctx context.Context, in *service.Inputs) (*instance, error) {
	pod := in.Pod
	if !isUID(pod.UID) {
		return nil, errdefs.InvalidInputf("%q cannot be a UID", pod.UID)
	}
	id := d.identityOf(pod)
	args, err := d.config.submission(pod, id, d.place.pod(pod.UID), d.place.program, d.place.script)
	if err != nil {
		return nil, service.NotMade(err)
	}
	b, err := d.bundle(ctx, in)
	if err != nil {
		return nil, service.NotMade(err)
	}
	before, err := d.place.write(pod.UID, b)
	if err != nil {
		return nil, service.NotMade(err)
	}
	t := &tracked{id: id, submitted: time.Now()}
	if before {
		found, err := d.slurm.jobs(ctx, "--name="+jobName(pod.UID))
		if err != nil {
			return nil, fmt.Errorf("look for its job: %w", err)
		}
		if len(found) > 0 {
			t.job = found[0]
		}
	}
	if t.job.ID == 0 {
		number, err := d.slurm.submit(ctx, args)
		switch {
		case err != nil && unclear(err):
			return nil, err
		case err != nil:
			if !before {
				_ = d.place.remove(pod.UID) // Slurm has no job for this directory
			}
			return nil, service.NotMade(err)
		}
		t.job = queued{ID: number, State: "PENDING", Submitted: t.submitted}
	}
	i := d.track(t)
	if without := d.config.withoutEffect(pod); without != "" && d.in.Recorder != nil {
		d.in.Recorder.Event(pod, corev1.EventTypeWarning, "AnnotationsWithoutEffect", without)
	}
	if err := d.place.submitted(pod.UID, t.job.ID); err != nil { // at the next start, a list finds the job without this file, as long as Slurm knows the job
		log.G(ctx).WithError(err).Warn("The number of a job cannot be written")
	}
	return i, nil
}

// track adds a pod, and returns its known state.
func (d *driver) track(t *tracked) *instance {
	d.mu.Lock()
	if known := d.pods[t.id.UID]; known != nil {
		t = known
	}
	d.pods[t.id.UID] = t
	d.refresh(t)
	t.reported = true // the caller reports this state
	i := t.shown
	d.mu.Unlock()
	d.look()
	return &i
}

// Find implements service.Driver. It ignores ended jobs, and cancels other jobs of the pod.
func (d *driver) Find(ctx context.Context, pod *corev1.Pod) (*instance, bool, error) {
	if !isUID(pod.UID) {
		return nil, false, nil
	}
	if _, err := os.Lstat(d.place.pod(pod.UID)); os.IsNotExist(err) {
		return nil, false, nil // a job could not run without these files
	}
	found, err := d.slurm.jobs(ctx, "--name="+jobName(pod.UID))
	if err != nil {
		return nil, false, err
	}
	var t *tracked
	var others []int
	for _, q := range found {
		switch {
		case ended[q.State] != "":
		case t == nil:
			t = &tracked{id: d.identityOf(pod), job: q}
		default:
			others = append(others, q.ID)
		}
	}
	if err := d.slurm.cancel(ctx, others); err != nil || t == nil {
		return nil, false, err
	}
	return d.track(t), true, nil
}

// Gone implements service.Mourner. It removes the directory of a pod without a job, which may contain secrets.
func (d *driver) Gone(pod *corev1.Pod) {
	if !isUID(pod.UID) {
		return
	}
	if err := d.place.remove(pod.UID); err != nil {
		log.G(context.Background()).WithError(err).WithField("pod", pod.Namespace+"/"+pod.Name).Warn("The directory of a pod could not be removed")
	}
}

// endTime is the time that a job has to end after the grace period of its pod.
const endTime = 20 * time.Second

// Stop implements service.Driver. It tells the job to stop the pod within its grace period. A second call does not give the pod more
// time.
func (d *driver) Stop(_ context.Context, pod *corev1.Pod, i *instance) error {
	d.mu.Lock()
	t := d.pods[i.id.UID]
	if t == nil {
		d.mu.Unlock()
		return nil // the job has ended, and the pod was just forgotten
	}
	if until := time.Now().Add(podspec.Grace(pod) + endTime); t.stop == nil || until.Before(t.stop.until) {
		t.stop = &stopping{until: until}
	}
	until := t.stop.until
	d.mu.Unlock()
	grace := max(0, time.Until(until)-endTime).Round(time.Second)
	stop := podjob.Stop{GraceSeconds: int64(grace / time.Second), Until: until}
	if err := jsonfile.Write(filepath.Join(d.place.pod(i.id.UID), job.StopFile), stop); err != nil && !os.IsNotExist(err) {
		return err
	}
	d.look()
	return nil
}

// Update implements service.Updater. It writes changed files of a pod's mounts.
func (d *driver) Update(ctx context.Context, pod *corev1.Pod, i *instance) error {
	return d.Renew(ctx, &service.Inputs{Pod: pod}, i)
}

// Renew implements service.Renewer. It writes the current files of a pod's mounts, as long as its job runs.
func (d *driver) Renew(ctx context.Context, in *service.Inputs, i *instance) error {
	if i.said != nil && i.said.Ended || ended[i.job.State] != "" {
		return nil
	}
	now, err := d.provider.Inputs(ctx, in.Pod)
	if err != nil {
		return err
	}
	b, err := d.bundle(ctx, now)
	if err != nil {
		return err
	}
	in.RenewAt = now.RenewAt
	return d.place.rewrite(in.Pod.UID, b)
}

// bundle returns the input of a pod's job, with the names of images for a registry.
func (d *driver) bundle(ctx context.Context, in *service.Inputs) (podjob.Bundle, error) {
	b, err := pack.Bundle(ctx, in, d.in, d.config.Containers)
	if err == nil {
		err = d.config.setImages(b.Pod)
	}
	return b, err
}
