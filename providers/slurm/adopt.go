// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/jsonfile"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// unansweredTime bounds the time until a job appears whose submission had no answer.
const unansweredTime = time.Hour

// firstUse marks the root as used at the first complete list, and removes failed submissions.
func (d *driver) firstUse(jobs map[types.UID][]queued) error {
	if d.provider.Cache().Synced() {
		return nil
	}
	d.mu.Lock()
	failed := d.listErr != nil
	d.mu.Unlock()
	if failed && d.place.program != "" { // sharedDir may have appeared since, and jobs need the program there
		again := d.place // its paths are the same
		if err := again.prepare(d.config.program); err != nil {
			return err
		}
	}
	return errors.Join(d.place.sweep(jobs, time.Now().Add(-unansweredTime)), d.place.use())
}

// adopt starts tracking pods of an earlier process: pods with a job, and pods whose job has ended and left its
// status. An unreadable directory may be a pod, so it is an error.
func (d *driver) adopt(ctx context.Context, jobs map[types.UID][]queued) error {
	all := map[types.UID]int{}
	if !d.provider.Cache().Synced() {
		found, err := d.place.found()
		if err != nil {
			return fmt.Errorf("read the directory of pods: %w", err)
		}
		all = found
	}
	for uid, list := range jobs {
		all[uid] = list[0].ID
	}
	fresh := d.place.used() != nil
	for uid, number := range all {
		d.mu.Lock()
		has := d.pods[uid] != nil
		d.mu.Unlock()
		var b podjob.Bundle
		if has {
			continue
		}
		err := jsonfile.Read(filepath.Join(d.place.pod(uid), job.BundleFile), &b)
		switch {
		case errors.Is(err, os.ErrNotExist) && fresh && alive(jobs[uid]):
			return fmt.Errorf("sharedDir: job %d runs the pod with UID %s, and its files are not there: look whether it is mounted", number, uid)
		case errors.Is(err, os.ErrNotExist):
			continue // a job cannot run without its files
		case err != nil && !errors.Is(err, jsonfile.ErrDamaged):
			return fmt.Errorf("read the files of the pod with UID %s: %w", uid, err)
		case err != nil || b.Pod == nil:
			log.G(ctx).WithField("uid", uid).Warn("the file bundle.json of a pod is damaged: the comment of its job identifies the pod")
			if b = named(jobs[uid]); b.Pod == nil {
				continue // its name is not known
			}
		}
		t := &tracked{id: identity{d.config.ClusterName, d.in.Node.Name, b.Pod.Namespace, b.Pod.Name, uid}, job: queued{ID: number}}
		if t.said, t.seen, err = d.place.said(uid, nil, false); err != nil {
			return fmt.Errorf("read the files of the pod with UID %s: %w", uid, err)
		}
		var stop podjob.Stop
		if jsonfile.Read(filepath.Join(d.place.pod(uid), job.StopFile), &stop) == nil {
			t.stop = &stopping{until: stop.Until}
		}
		d.mu.Lock()
		if d.pods[uid] == nil {
			d.pods[uid] = t
			d.changed = time.Now()
			d.refresh(t)
		}
		d.mu.Unlock()
	}
	return nil
}

// named returns the pod from the comments of its jobs, for a pod with a damaged file. Without a valid comment, the bundle has no pod.
func named(jobs []queued) (b podjob.Bundle) {
	for _, q := range jobs {
		if id, ok := parseComment(q.Comment); ok {
			b.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name, UID: id.UID}}
		}
	}
	return b
}

// alive reports whether one of jobs has not ended.
func alive(jobs []queued) bool {
	return slices.ContainsFunc(jobs, func(q queued) bool { return ended[q.State] == "" })
}
