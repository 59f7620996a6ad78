// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// resolve collects what a pod takes from other objects.
func (p *provider) resolve(ctx context.Context, pod *corev1.Pod) (resolved, error) {
	r := resolved{pod: pod, containers: map[string]*corev1.Container{}, files: map[string][]podspec.File{}}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c, err := p.objects.Container(ctx, pod, list[i].Name)
			if err != nil {
				return r, err
			}
			r.containers[list[i].Name] = c
		}
	}
	sources := podspec.Sources{Objects: p.objects, Tokens: p.tokens, Allocatable: func() corev1.ResourceList { return p.config.Capacity }}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if !podspec.Written(v) {
			continue
		}
		files, _, err := sources.Files(ctx, pod, v, field.NewPath("spec", "volumes").Index(i))
		if err != nil {
			return r, fmt.Errorf("volume %s: %w", v.Name, err)
		}
		r.files[v.Name] = files
	}
	for _, from := range pod.Spec.ImagePullSecrets {
		secret, err := p.objects.Secret(ctx, pod, from.Name)
		if err != nil { // the image may be public, as a kubelet has it
			log.G(ctx).WithError(err).WithField("pod", pod.Namespace+"/"+pod.Name).Warn("A secret for images cannot be read")
			continue
		}
		r.credentials = append(r.credentials, credentialsOf(secret)...)
	}
	return r, nil
}
