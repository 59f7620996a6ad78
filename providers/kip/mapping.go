// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// Annotations of pods, as Kip has them.
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

// refused are annotations of Kip that cannot be had, and why.
var refused = map[string]string{
	annotationPrefix + "cloud-route":          "this provider changes no routes of the cloud",
	annotationPrefix + "task-execution-role":  "it is for ECS, which the provider fargate has",
	annotationPrefix + "task-role":            "it is for ECS, which the provider fargate has",
	annotationPrefix + "image-overlay-rootfs": "the root of each container is writable without it",
	annotationHealthy:                         "set startWithin in the provider's configuration",
}

// Tags of machines besides those of package identity.
const (
	tagToken   = "vk-token"
	tagStandby = "vk-standby"
	tagSigned  = "vk-signed" // the key that was signed for it
)

// wish is what the machine of a pod is to be.
type wish struct {
	types   []machine.Type // the best first
	spec    machine.Spec   // without token, type, tags and user data
	special bool           // no machine that waits is like that
}

// wishOf returns what the machine of a pod is to be.
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

// check refuses what no machine can have.
func (c Config) check(pod *corev1.Pod) error {
	_, err := c.wishOf(pod)
	return err
}

// tokenOf names a machine. That of a pod and a type is the same whenever it is asked for again.
func tokenOf(o identity.Owner, parts ...string) string {
	return "vk-" + identity.Hash(append([]string{o.Cluster, o.Node}, parts...)...)
}

// specOf is what a machine is made from.
func (d *driver) specOf(spec machine.Spec, t machine.Type, token string, pod *corev1.Pod) machine.Spec {
	spec.Type, spec.Token = t, token
	spec.Tags = maps.Clone(d.config.Tags)
	if spec.Tags == nil {
		spec.Tags = map[string]string{}
	}
	name, uid := "virtual-kubelet standby", pod.GetUID()
	if uid != "" {
		name = pod.Namespace + "/" + pod.Name
		maps.Copy(spec.Tags, d.owner.Tags(identity.Of(pod)))
	} else {
		maps.Copy(spec.Tags, d.ownerTags())
		spec.Tags[tagStandby] = "true"
	}
	spec.Tags["Name"], spec.Tags[tagToken] = name, token
	spec.UserData = d.authority.UserData(token, uid, d.config.OrphanAfter.Duration, d.config.AbandonedAfter.Duration).Marshal()
	return spec
}

// ownerTags are those that all machines of the node have.
func (d *driver) ownerTags() map[string]string {
	return map[string]string{identity.TagCluster: d.owner.Cluster, identity.TagNode: d.owner.Node}
}
