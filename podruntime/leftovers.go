// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// leftoversEvery is the interval of searches for the files of gone pods.
const leftoversEvery = 5 * time.Minute

// cleanLeftovers removes the files of unknown pods: their removal failed, or the machine lost their containers. It
// removes the files of a pod unknown in two searches in a row: the pod controller has told of all pods by then.
func (r *Runtime) cleanLeftovers(ctx context.Context) {
	suspects := map[types.UID]bool{}
	for {
		select {
		case <-time.After(leftoversEvery):
		case <-ctx.Done():
			return
		}
		select {
		case <-r.lister.first:
		default:
			continue // the runtime's state is not known
		}
		if err := r.puller.Prune(ctx); err != nil && ctx.Err() == nil {
			log.G(ctx).WithError(err).Warn("forget who pulled images that are gone")
		}
		left, err := r.findLeftovers()
		if err != nil {
			log.G(ctx).WithError(err).Warn("look for files of deleted pods")
		}
		next := map[types.UID]bool{}
		for _, uid := range left {
			if !suspects[uid] {
				next[uid] = true
				continue
			}
			if err := errors.Join(r.volumes.Remove(uid), os.RemoveAll(r.messageDir(uid)), r.cgroups.removeGroup(uid)); err != nil {
				log.G(ctx).WithField("podUID", string(uid)).WithError(err).Warn("remove what a pod that is gone has left on disk")
				next[uid] = true
			}
		}
		suspects = next
	}
}

// findLeftovers returns the pods with files or a cgroup, and without a worker.
func (r *Runtime) findLeftovers() ([]types.UID, error) {
	uids, err := r.volumes.Pods()
	entries, readErr := os.ReadDir(filepath.Join(r.cfg.Root, "messages"))
	if readErr != nil && !errors.Is(readErr, os.ErrNotExist) {
		err = errors.Join(err, readErr)
	}
	for _, e := range entries {
		uids = append(uids, types.UID(e.Name()))
	}
	uids = append(uids, r.cgroups.podsWithGroup()...)
	var left []types.UID
	for _, uid := range uids {
		if r.findWorker(uid) == nil {
			left = append(left, uid)
		}
	}
	return left, err
}
