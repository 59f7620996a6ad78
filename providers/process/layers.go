// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
)

const (
	// layersEvery is the interval at which the layers of containers are measured.
	layersEvery = 10 * time.Second
	// layerTime bounds the measurement of one container: with a million files, the count so far counts.
	layerTime = 10 * time.Second
)

// layersRest is the least pause before a measurement on request: a caller that must know which container fills
// the disk cannot wait.
const layersRest = time.Second

// written is the use of the disk by a container.
type written struct {
	bytes, inodes int64
	at            time.Time // when the layer was counted
}

// layers are the last measurements of the containers' layers.
type layers struct {
	mu   sync.Mutex
	last map[string]written // guarded by mu: by container; never changed, but replaced
	// asked holds a token if there was a request since the last measurement.
	asked chan struct{}
	// images has the sizes of images whose files are copied into each container; owned by run.
	images map[string]written
}

// layerUse returns the use of a container: nothing before its first measurement, as of its creation.
func (l *layers) layerUse(c *container) written {
	select {
	case l.asked <- struct{}{}:
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if w, ok := l.last[c.id]; ok {
		return w
	}
	return written{at: c.Created}
}

// measureLayers measures until ctx ends, one container after the other. It rests nine times as long as a
// measurement took, and some seconds at least, unless a caller asks.
func (r *Runtime) measureLayers(ctx context.Context) {
	if !r.isContained() {
		return // without isolation, containers write anywhere
	}
	for {
		select {
		case <-r.layers.asked: // this measurement answers all later requests
		default:
		}
		begin, now := time.Now(), map[string]written{}
		for _, c := range r.containersOf("") {
			now[c.id] = r.measureLayer(ctx, c)
		}
		r.layers.mu.Lock()
		r.layers.last = now
		r.layers.mu.Unlock()
		rest := max(layersRest, 9*time.Since(begin))
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
		select {
		case <-ctx.Done():
			return
		case <-r.layers.asked:
		case <-time.After(max(layersEvery-rest, 0)):
		}
	}
}

// measureLayer counts the files in the layer of a container, or in its copy of the image beyond the image.
func (r *Runtime) measureLayer(ctx context.Context, c *container) written {
	if r.overlay {
		return diskUse(ctx, filepath.Join(c.dir, "upper"))
	}
	image, known := r.layers.images[c.ImageID]
	if !known {
		if image = diskUse(ctx, r.images.Root(c.ImageID)); ctx.Err() == nil {
			r.layers.images[c.ImageID] = image
		}
	}
	all := diskUse(ctx, filepath.Join(c.dir, "rootfs"))
	return written{max(all.bytes-image.bytes, 0), max(all.inodes-image.inodes, 0), all.at}
}

// diskUse counts readable files: unreadable files belong to a container that is being removed.
func diskUse(ctx context.Context, dir string) written {
	ctx, cancel := context.WithTimeout(ctx, layerTime)
	defer cancel()
	begin := time.Now()
	bytes, inodes, _ := podruntime.DiskUse(ctx, dir)
	return written{bytes, inodes, begin}
}
