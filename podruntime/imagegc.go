// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/image"
)

// ImageGC configures the removal of unused images. The fields correspond to a kubelet's settings imageGC…,
// imageMinimumGCAge and imageMaximumGCAge.
type ImageGC struct {
	// HighThresholdPercent is the least usage of the disk of images for a removal of images, the longest unused
	// first, until the usage is LowThresholdPercent. Defaults 85 and 80; 100 removes none.
	HighThresholdPercent int64 `json:"highThresholdPercent,omitempty"`
	LowThresholdPercent  int64 `json:"lowThresholdPercent,omitempty"`
	// MinimumAge is the least age of removed images since they were seen first. Default 2m.
	MinimumAge metav1.Duration `json:"minimumAge,omitzero"`
	// MaximumAge is the longest unused time of an image, however much space there is. Default: for ever.
	MaximumAge metav1.Duration `json:"maximumAge,omitzero"`
}

const defaultMinimumAge = 2 * time.Minute

// imagePolicy returns the policy of g, with its defaults.
func (g ImageGC) imagePolicy() (image.Policy, error) {
	p := image.Policy{
		High: cmp.Or(g.HighThresholdPercent, 85), Low: cmp.Or(g.LowThresholdPercent, 80),
		MinAge: cmp.Or(g.MinimumAge.Duration, defaultMinimumAge), MaxAge: g.MaximumAge.Duration,
	}
	switch {
	case p.High < 0 || p.High > 100 || p.Low < 0 || p.Low >= p.High:
		return p, errdefs.InvalidInputf("pod runtime: image garbage collection: thresholds of %d %% and %d %%: want 0 ≤ low < high ≤ 100", p.High, p.Low)
	case p.MinAge < 0 || p.MaxAge < 0:
		return p, errdefs.InvalidInput("pod runtime: image garbage collection: an age cannot be negative")
	case p.MaxAge > 0 && p.MaxAge <= p.MinAge:
		return p, errdefs.InvalidInputf("pod runtime: image garbage collection: a maximum age of %v is not above the minimum age of %v", p.MaxAge, p.MinAge)
	}
	return p, nil
}

// newCollector returns the collector of unused images.
func (r *Runtime) newCollector() (*image.Collector, error) {
	policy, err := r.cfg.ImageGC.imagePolicy()
	if err != nil {
		return nil, err
	}
	return image.NewCollector(image.Collector{
		Policy: policy, Images: r.cfg.Images, InUse: r.imagesInUse, Disk: r.imageDisk,
		Event: func(reason, message string) { r.nodeEvent(corev1.EventTypeWarning, reason, message) },
	}), nil
}

// imageDisk measures the file system of images.
func (r *Runtime) imageDisk(ctx context.Context) (image.Disk, error) {
	fs, err := r.stats.ImageFs(ctx)
	if err != nil {
		return image.Disk{}, err
	}
	return image.Disk{Capacity: *fs.CapacityBytes, Available: *fs.AvailableBytes}, nil
}

// imagesInUse returns the images of containers, including those of other users of the runtime, and the images
// that pods of this node name: their containers are about to be made.
func (r *Runtime) imagesInUse(ctx context.Context) (map[string]bool, error) {
	containers, err := r.cfg.Runtime.ListContainers(ctx, &runtimeapi.ContainerFilter{})
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, c := range containers {
		used[c.GetImageId()], used[c.GetImageRef()], used[c.GetImage().GetImage()] = true, true, true
	}
	names := map[string]bool{}
	for _, w := range r.allWorkers() {
		w.mu.Lock()
		pod := w.shown
		w.mu.Unlock()
		if pod == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, name := range imagesOf(pod) {
			names[name] = true
		}
	}
	for given := range names {
		name, err := image.Normalize(given)
		if err != nil {
			continue // no image can have this name
		}
		answer, err := r.cfg.Images.ImageStatus(ctx, &runtimeapi.ImageSpec{Image: name, UserSpecifiedImage: given}, false)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil { // the pod waits for this image, and all others must not wait with it
			log.G(ctx).WithError(err).WithField("image", name).Info("an image that a pod names cannot be looked at; it is kept by its name")
		}
		used[name], used[answer.GetImage().GetId()] = true, true
	}
	delete(used, "")
	return used, nil
}

// imagesOf returns the names of the images of a pod.
func imagesOf(pod *corev1.Pod) []string {
	var names []string
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			names = append(names, list[i].Image)
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		names = append(names, pod.Spec.EphemeralContainers[i].Image)
	}
	for i := range pod.Spec.Volumes {
		if v := pod.Spec.Volumes[i].Image; v != nil {
			names = append(names, v.Reference)
		}
	}
	return names
}

// nodeEvent records an event about the node.
func (r *Runtime) nodeEvent(eventType, reason, message string) {
	if r.isStopping() {
		return
	}
	name := r.cfg.Node.Name
	r.cfg.Recorder.Event(&corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: name, UID: types.UID(name)}, eventType, reason, message)
}
