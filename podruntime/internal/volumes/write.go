// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// write brings a volume that is written from the API up to date. What is wrong with its sources is found
// before anything changes.
func (v *Volumes) write(ctx context.Context, pod *corev1.Pod, i int) (time.Time, error) {
	volume := &pod.Spec.Volumes[i]
	c := collector{v: v, pod: pod, files: map[string]file{}}
	if err := c.collect(ctx, volume, field.NewPath("spec", "volumes").Index(i)); err != nil {
		return c.again, err
	}
	memory := onMemory(volume)
	if err := v.make(pod, volume.Name, memory, 0); err != nil {
		return c.again, err
	}
	root, err := os.OpenRoot(v.place(pod.UID, volume.Name, memory))
	if err != nil {
		return c.again, err
	}
	defer root.Close()
	if group := fsGroup(pod); group != nil {
		if err := giveOne(root, ".", *group, true); err != nil {
			return c.again, err
		}
	}
	for _, dir := range nested(pod, volume.Name) {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return c.again, err
		}
	}
	return c.again, project(root, c.files, fsGroup(pod))
}
