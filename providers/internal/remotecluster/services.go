// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
)

// addServices adds the environment variables of the home cluster's services to containers. The pod's own
// variables, including those from ConfigMaps and Secrets, take precedence.
func (c *Cluster) addServices(ctx context.Context, home *corev1.Pod, tr *Translation) error {
	bare := withoutVariables(home)
	for _, list := range [][]corev1.Container{tr.Pod.Spec.InitContainers, tr.Pod.Spec.Containers} {
		for i := range list {
			services, err := c.serviceVariables(ctx, home, bare, list[i].Name)
			if err != nil {
				return err
			}
			list[i].Env = append(services, list[i].Env...)
		}
	}
	return nil
}

func (c *Cluster) serviceVariables(ctx context.Context, home, bare *corev1.Pod, name string) ([]corev1.EnvVar, error) {
	resolved, err := c.objects.Container(ctx, bare, name)
	if err != nil {
		return nil, err
	}
	own, err := c.ownVariables(ctx, home, name)
	if err != nil {
		return nil, err
	}
	var out []corev1.EnvVar
	for _, e := range resolved.Env {
		if !own[e.Name] && e.ValueFrom == nil {
			out = append(out, corev1.EnvVar{Name: e.Name, Value: escapeLiteral(e.Value)})
		}
	}
	return out, nil
}

// withoutVariables returns the pod without its own variables, so that only service variables are resolved here.
// Otherwise a Secret that changes at this moment could leave a value in the spec of the remote pod. The rest of
// the pod is shared.
func withoutVariables(home *corev1.Pod) *corev1.Pod {
	bare := *home
	for _, list := range []*[]corev1.Container{&bare.Spec.InitContainers, &bare.Spec.Containers} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i].Env, (*list)[i].EnvFrom = nil, nil
		}
	}
	return &bare
}

// ownVariables returns the names of a container's own variables, including those from ConfigMaps and Secrets.
func (c *Cluster) ownVariables(ctx context.Context, home *corev1.Pod, name string) (map[string]bool, error) {
	own := map[string]bool{}
	for _, list := range [][]corev1.Container{home.Spec.InitContainers, home.Spec.Containers} {
		for i := range list {
			if list[i].Name != name {
				continue
			}
			for _, e := range list[i].Env {
				own[e.Name] = true
			}
			for _, from := range list[i].EnvFrom {
				keys, err := c.variableKeys(ctx, home, from)
				if err != nil {
					return nil, err
				}
				for _, k := range keys {
					own[from.Prefix+k] = true
				}
			}
		}
	}
	return own, nil
}

// variableKeys returns the keys of the ConfigMap or Secret of an envFrom.
func (c *Cluster) variableKeys(ctx context.Context, home *corev1.Pod, from corev1.EnvFromSource) (keys []string, err error) {
	optional := false
	switch {
	case from.ConfigMapRef != nil:
		optional = ptr.Deref(from.ConfigMapRef.Optional, false)
		var m *corev1.ConfigMap
		if m, err = c.objects.ConfigMap(ctx, home, from.ConfigMapRef.Name); err == nil {
			for k := range m.Data {
				keys = append(keys, k)
			}
		}
	case from.SecretRef != nil:
		optional = ptr.Deref(from.SecretRef.Optional, false)
		var s *corev1.Secret
		if s, err = c.objects.Secret(ctx, home, from.SecretRef.Name); err == nil {
			for k := range s.Data {
				keys = append(keys, k)
			}
		}
	}
	if apierrors.IsNotFound(err) && optional {
		return nil, nil
	}
	return keys, err
}
