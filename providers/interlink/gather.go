// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// gather reads what a pod needs of the API.
func (p *provider) gather(ctx context.Context, pod *corev1.Pod) (needs, error) {
	n := needs{
		containers: map[string]*corev1.Container{}, configMaps: map[string]*corev1.ConfigMap{}, secrets: map[string]*corev1.Secret{},
		files: map[string][]podspec.File{},
	}
	if p.objects == nil {
		return n, errors.New("this node has nothing of the API yet")
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c, err := p.objects.Container(ctx, pod, list[i].Name)
			if err != nil {
				return n, fmt.Errorf("container %s: %w", list[i].Name, err)
			}
			n.containers[c.Name] = c
		}
	}
	for i := range pod.Spec.Volumes {
		if err := p.volume(ctx, pod, i, &n); err != nil {
			return n, fmt.Errorf("volume %s: %w", pod.Spec.Volumes[i].Name, err)
		}
	}
	return n, nil
}

// volume reads what a volume is written from, and holds it to what a kubelet would: what is missing is an error before anything is sent.
func (p *provider) volume(ctx context.Context, pod *corev1.Pod, i int, n *needs) error {
	v := &pod.Spec.Volumes[i]
	if !podspec.Written(v) || v.Projected != nil && p.config.NoProjectedVolumes {
		return nil
	}
	sources := podspec.Sources{Objects: withCA{p.objects, p.config.KubernetesAPI.CA}, Tokens: p.tokens}
	files, _, err := sources.Files(ctx, pod, v, field.NewPath("spec", "volumes").Index(i))
	if err != nil {
		return err
	}
	switch {
	case v.ConfigMap != nil:
		m, err := sources.Objects.ConfigMap(ctx, pod, v.ConfigMap.Name)
		if ptr.Deref(v.ConfigMap.Optional, false) && apierrors.IsNotFound(err) {
			return nil
		}
		n.configMaps[v.ConfigMap.Name] = m
		return err
	case v.Secret != nil:
		s, err := p.objects.Secret(ctx, pod, v.Secret.SecretName)
		if ptr.Deref(v.Secret.Optional, false) && apierrors.IsNotFound(err) {
			return nil
		}
		n.secrets[v.Secret.SecretName] = s
		return err
	}
	n.files[v.Name] = files
	return nil
}

// withCA has the authority that is seen from outside in the place of the cluster's own.
type withCA struct {
	node.PodObjects
	ca string
}

// ConfigMap implements podspec.Objects.
func (w withCA) ConfigMap(ctx context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	m, err := w.PodObjects.ConfigMap(ctx, pod, name)
	if err != nil || w.ca == "" || name != kubeRootCA {
		return m, err
	}
	m = m.DeepCopy()
	if m.Data == nil {
		m.Data = map[string]string{}
	}
	m.Data["ca.crt"] = w.ca
	return m, nil
}
