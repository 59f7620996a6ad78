// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"cmp"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// Annotations of pods, with the names that Kip uses.
const (
	annotationPrefix  = "pod.elotl.co/"
	annotationLaunch  = annotationPrefix + "launch-type"
	annotationType    = annotationPrefix + "instance-type"
	annotationVolume  = annotationPrefix + "volume-size"
	annotationPrivate = annotationPrefix + "private-ip-only"
	annotationGroups  = annotationPrefix + "security-groups"
	annotationProfile = annotationPrefix + "instance-profile"
	annotationHealthy = annotationPrefix + "healthcheck-healthy-timeout"
)

// refused are the unsupported annotations of Kip, with the reasons.
var refused = map[string]string{
	annotationPrefix + "cloud-route":          "this provider changes no routes of the cloud",
	annotationPrefix + "task-execution-role":  "it is for ECS, which the provider fargate has",
	annotationPrefix + "task-role":            "it is for ECS, which the provider fargate has",
	annotationPrefix + "image-overlay-rootfs": "the root of each container is writable without it",
	annotationHealthy:                         "set startWithin in the provider's configuration",
}

// Tags of machines, in addition to the tags of package identity.
const (
	tagToken   = "vk-token"
	tagStandby = "vk-standby"
	tagSigned  = "vk-signed" // the fingerprint of the key that the node signed
)

// wish is the machine that a pod needs.
type wish struct {
	types   []machine.Type // best first
	spec    machine.Spec   // without token, type, tags and user data
	special bool           // no standby machine fits
}

// wishOf returns the machine that a pod needs, or an invalid-input error.
func (c Config) wishOf(pod *corev1.Pod) (w wish, err error) {
	at := func(key string) string { return "metadata.annotations[" + key + "]" }
	for _, key := range slices.Sorted(maps.Keys(pod.Annotations)) {
		if why, is := refused[key]; is {
			return w, errdefs.InvalidInputf("%s: %s", at(key), why)
		}
	}
	w.spec = machine.Spec{Image: c.Image, VolumeGiB: c.VolumeGiB, PrivateOnly: c.PrivateIPOnly}
	switch v := pod.Annotations[annotationLaunch]; v {
	case "", "on-demand":
	case "spot":
		if c.Nova != nil {
			return w, errdefs.InvalidInputf("%s: %q: Nova has no spot machines", at(annotationLaunch), v)
		}
		w.spec.Spot = true
	default:
		return w, errdefs.InvalidInputf("%s: %q: want spot or on-demand", at(annotationLaunch), v)
	}
	switch v := pod.Annotations[annotationPrivate]; v {
	case "", "false":
	case "true":
		w.special = w.special || !w.spec.PrivateOnly
		w.spec.PrivateOnly = true
	default:
		return w, errdefs.InvalidInputf("%s: %q: want true or false", at(annotationPrivate), v)
	}
	if v := pod.Annotations[annotationVolume]; v != "" {
		q, err := resource.ParseQuantity(v)
		gib := (q.Value() + 1<<30 - 1) >> 30
		if err != nil || gib < 1 || gib > c.MaxVolumeGiB {
			return w, errdefs.InvalidInputf("%s: %q: want a size such as 12Gi of at most maxVolumeGiB of the provider's configuration, which is %d", at(annotationVolume), v, c.MaxVolumeGiB)
		}
		w.special = w.special || gib > w.spec.VolumeGiB
		w.spec.VolumeGiB = max(gib, w.spec.VolumeGiB)
	}
	for _, group := range strings.FieldsFunc(pod.Annotations[annotationGroups], func(r rune) bool { return r == ',' || r == ' ' }) {
		if !slices.Contains(c.SecurityGroups, group) {
			return w, errdefs.InvalidInputf("%s: %q: is not one of securityGroups in the provider's configuration, which pods may take", at(annotationGroups), group)
		}
		w.spec.SecurityGroups, w.special = append(w.spec.SecurityGroups, group), true
	}
	if v := pod.Annotations[annotationProfile]; v != "" {
		if !slices.Contains(c.InstanceProfiles, v) {
			return w, errdefs.InvalidInputf("%s: %q: is not one of instanceProfiles in the provider's configuration, which pods may take", at(annotationProfile), v)
		}
		w.spec.InstanceProfile, w.special = v, true
	}
	w.types, err = c.choose(pod, pod.Annotations[annotationType], w.spec.Spot)
	return w, err
}

// check refuses a pod that no machine fits.
func (c Config) check(pod *corev1.Pod) error {
	_, err := c.wishOf(pod)
	return err
}

// tokenOf returns the name of a machine. It is the same for repeated calls with the same pod and type.
func tokenOf(o identity.Owner, parts ...string) string {
	return "vk-" + identity.Hash(append([]string{o.Cluster, o.Node}, parts...)...)
}

// choose returns the types with room for a pod, best first: by fewest GPUs, lowest price (types without a price last), fewest CPUs, and least memory. The
// pattern from the annotation is the name of a type, or has wildcards such as *. If a pod requests nothing, the default pattern is DefaultType.
func (c Config) choose(pod *corev1.Pod, pattern string, spot bool) ([]machine.Type, error) {
	if len(c.Types) == 0 {
		return nil, nil // reached only by a check without a configuration, which does not know the sizes
	}
	a := askedBy(pod)
	if pattern == "" && a.none {
		pattern = c.DefaultType
	}
	var some []machine.Type
	known := false
	for _, t := range c.Types {
		if matched, err := path.Match(cmp.Or(pattern, "*"), t.Name); err != nil || !matched {
			continue
		}
		known = true
		if m := t.machineType(); a.room(m) {
			some = append(some, m)
		}
	}
	switch {
	case !known:
		return nil, errdefs.InvalidInputf("metadata.annotations[%s]: %q: no type of the provider's configuration is called so", annotationType, pattern)
	case len(some) == 0 && pattern != "":
		return nil, errdefs.InvalidInputf("spec.containers: no type %s has room for %s%s", pattern, a.size, devices(a.gpus))
	case len(some) == 0:
		return nil, errdefs.InvalidInputf("spec.containers: no type of the provider's configuration has room for %s%s", a.size, devices(a.gpus))
	}
	dear := func(t machine.Type) int64 { return cmp.Or(priceOf(t, spot), math.MaxInt64) }
	slices.SortStableFunc(some, func(x, y machine.Type) int {
		return cmp.Or(cmp.Compare(x.GPUs, y.GPUs), cmp.Compare(dear(x), dear(y)), cmp.Compare(x.MilliCPU, y.MilliCPU), cmp.Compare(x.Memory, y.Memory))
	})
	return some, nil
}

// deviceKind returns the CDI kind of the GPUs that the pod asks for. For a pod without GPUs, it returns the kind whose devices the agent hides.
func (c Config) deviceKind(pod *corev1.Pod) string {
	for name := range askedBy(pod).gpus { // all types with room have one resource of GPUs
		return name
	}
	for _, t := range c.Types {
		if t.GPUs > 0 {
			return t.gpu()
		}
	}
	return ""
}

// devices formats the requested resources other than CPU and memory.
func devices(gpus map[string]int64) (all string) {
	for _, name := range slices.Sorted(maps.Keys(gpus)) {
		all += " and " + name
	}
	return all
}
