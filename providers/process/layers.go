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
	// layerTime limits the measurement of one container. After it, the partial result is used.
	layerTime = 10 * time.Second
)

// layersRest is the minimum pause before a measurement on request. It is short, because eviction must find the
// container that fills the disk.
const layersRest = time.Second

// written is the disk usage of a container.
type written struct {
	bytes, inodes int64
	at            time.Time // when the layer was counted
}

// layers are the last measurements of the containers' layers.
type layers struct {
	mu   sync.Mutex
	last map[string]written // guarded by mu: by container; never changed, but replaced
	// asked has a token if a caller asked for usage since the last measurement began.
	asked chan struct{}
	// images has the sizes of images whose files are copied into each container; owned by run.
	images map[string]written
}

// layerUse returns the last measured usage of a container, and requests a measurement. Before the first
// measurement, the usage is zero at the time of creation.
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

// measureLayers measures all containers in turn until ctx ends. It pauses for nine times the duration of the last
// round, and at least for layersEvery, or layersRest if a caller asks.
func (r *Runtime) measureLayers(ctx context.Context) {
	if !r.isContained() {
		return // with isolation none, containers have no layer
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

// measureLayer measures the writable layer of a container. If the container has a copy of its image, the size of
// the image is subtracted.
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

// diskUse measures the files in dir. It ignores errors: files disappear while a container is being removed.
func diskUse(ctx context.Context, dir string) written {
	ctx, cancel := context.WithTimeout(ctx, layerTime)
	defer cancel()
	begin := time.Now()
	bytes, inodes, _ := podruntime.DiskUse(ctx, dir)
	return written{bytes, inodes, begin}
}
