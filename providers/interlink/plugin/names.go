// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// named refuses a pod with names that a Kubernetes API server would refuse. Providers make paths of these names,
// and no API server has validated them here.
func named(in wire.Retrieved) error {
	pod := in.Pod
	check := func(what, name string, rule func(string) []string) error {
		if wrong := rule(name); len(wrong) > 0 {
			return errdefs.InvalidInputf("%s %.60q: %s", what, name, wrong[0])
		}
		return nil
	}
	subdomain, label := validation.IsDNS1123Subdomain, validation.IsDNS1123Label
	errs := []error{check("namespace", pod.Namespace, label), check("name", pod.Name, subdomain)}
	if len(pod.Spec.EphemeralContainers) > 0 {
		errs = append(errs, errdefs.InvalidInput("ephemeral containers: no pod is made with one"))
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		errs = append(errs, check("container", c.Name, label))
		for _, m := range c.VolumeMounts {
			errs = append(errs, check("mount of the volume", m.Name, label), check("subPath", m.SubPath, descends))
		}
	}
	items := func(list []corev1.KeyToPath) {
		for _, item := range list {
			errs = append(errs, check("key", item.Key, validation.IsConfigMapKey), check("path", item.Path, descends))
		}
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		errs = append(errs, check("volume", v.Name, label))
		if m := v.ConfigMap; m != nil {
			errs = append(errs, check("ConfigMap", m.Name, subdomain))
			items(m.Items)
		}
		if s := v.Secret; s != nil {
			errs = append(errs, check("Secret", s.SecretName, subdomain))
			items(s.Items)
		}
	}
	keys := func(what, name string, list []string) {
		errs = append(errs, check(what, name, subdomain))
		for _, key := range list {
			errs = append(errs, check("key", key, validation.IsConfigMapKey))
		}
	}
	for _, c := range in.Containers {
		for i := range c.ConfigMaps {
			keys("ConfigMap", c.ConfigMaps[i].Name, slices.AppendSeq(slices.Collect(maps.Keys(c.ConfigMaps[i].Data)), maps.Keys(c.ConfigMaps[i].BinaryData)))
		}
		for i := range c.Secrets {
			keys("Secret", c.Secrets[i].Name, slices.AppendSeq(slices.Collect(maps.Keys(c.Secrets[i].Data)), maps.Keys(c.Secrets[i].StringData)))
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// descends is the rule for a path within a volume; "" is the volume itself.
func descends(p string) []string {
	if path.IsAbs(p) || slices.Contains(strings.Split(p, "/"), "..") {
		return []string{"leads out of the volume"}
	}
	return nil
}

// inside reports whether p is the clean path of a file within a volume.
func inside(p string) bool {
	return p != "" && path.Clean(p) == p && len(descends(p)) == 0
}
