// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/image"
)

// leftoversEvery is the interval of searches for leftover files.
const leftoversEvery = 5 * time.Minute

// leftovers removes the files of unknown pods: their removal failed, or the machine lost their containers. It removes the files of a pod that is
// unknown in two searches in a row, because the pod controller has announced all pods by then.
type leftovers struct {
	files   *podFiles
	puller  *image.Puller
	workers *workers
	lists   *lists

	suspects map[types.UID]bool // owned by run: the unknown pods of the last search
}

// run searches until ctx ends.
func (l *leftovers) run(ctx context.Context) {
	for {
		select {
		case <-time.After(leftoversEvery):
		case <-ctx.Done():
			return
		}
		select {
		case <-l.lists.first:
		default:
			continue // the runtime's state is unknown
		}
		if err := l.puller.Prune(ctx); err != nil && ctx.Err() == nil {
			log.G(ctx).WithError(err).Warn("forget who pulled images that are gone")
		}
		l.searchFiles(ctx)
	}
}

func (l *leftovers) searchFiles(ctx context.Context) {
	uids, err := l.files.listPods()
	if err != nil {
		log.G(ctx).WithError(err).Warn("look for files of deleted pods")
	}
	next := map[types.UID]bool{}
	for _, uid := range uids {
		switch {
		case l.workers.findWorker(uid) != nil:
			continue
		case !l.suspects[uid]:
			next[uid] = true
			continue
		}
		if err := l.files.removeUnknown(uid); err != nil {
			log.G(ctx).WithField("podUID", string(uid)).WithError(err).Warn("failed to remove the files of a pod that no longer exists")
			next[uid] = true
		}
	}
	l.suspects = next
}
