// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/image"
)

// ImageGC configures the removal of unused images. The fields correspond to a kubelet's settings imageGC…,
// imageMinimumGCAge and imageMaximumGCAge.
type ImageGC struct {
	// HighThresholdPercent is the disk usage from which images are removed, least recently used first, until the usage is LowThresholdPercent.
	// Defaults: 85 and 80. 100 disables the removal.
	HighThresholdPercent int64 `json:"highThresholdPercent,omitempty"`
	LowThresholdPercent  int64 `json:"lowThresholdPercent,omitempty"`
	// MinimumAge is the minimum age of a removed image, counted from its first detection. Default 2m.
	MinimumAge metav1.Duration `json:"minimumAge,omitzero"`
	// MaximumAge is the time after which an unused image is removed, independently of the disk usage. Default: never.
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
func newCollector(cfg Config, w *workers, u *usage, e events) (*image.Collector, error) {
	policy, err := cfg.ImageGC.imagePolicy()
	if err != nil {
		return nil, err
	}
	use := &imageUse{runtime: cfg.Runtime, images: cfg.Images, workers: w}
	return image.NewCollector(image.Collector{
		Policy: policy, Images: cfg.Images, InUse: use.findImages, Disk: u.imageDisk,
		Event: func(reason, message string) { e.recordNode(corev1.EventTypeWarning, reason, message) },
	}), nil
}

// imageUse finds the images that must be kept.
type imageUse struct {
	runtime cri.RuntimeService
	images  cri.ImageManagerService
	workers *workers
}

// findImages returns the images of containers, including containers of other users of the runtime, and the images in the specs of this node's pods,
// whose containers may be about to start.
func (u *imageUse) findImages(ctx context.Context) (map[string]bool, error) {
	containers, err := u.runtime.ListContainers(ctx, &runtimeapi.ContainerFilter{})
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, c := range containers {
		used[c.GetImageId()], used[c.GetImageRef()], used[c.GetImage().GetImage()] = true, true, true
	}
	names := map[string]bool{}
	for _, w := range u.workers.allWorkers() {
		pod := w.report.lastPod()
		if podEnded(pod) {
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
		answer, err := u.images.ImageStatus(ctx, &runtimeapi.ImageSpec{Image: name, UserSpecifiedImage: given}, false)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil { // only the pod with this image waits; other images must not wait with it
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
