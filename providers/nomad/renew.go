// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// renewFirst is after which time the tokens are replaced of a pod that ran before the node did: a 20th to a 20th and a 10th of their life, as a
// fifth of it is left, and apart from those of other pods.
func renewFirst(pod *corev1.Pod) time.Duration {
	life := time.Hour
	for i := range pod.Spec.Volumes {
		v := onlyTokens(&pod.Spec.Volumes[i])
		if v == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if seconds := s.ServiceAccountToken.ExpirationSeconds; seconds != nil {
				life = min(life, time.Duration(*seconds)*time.Second)
			}
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(pod.UID))
	return life/20 + life/10*time.Duration(h.Sum32()%1000)/1000
}

// renew replaces the tokens in the Variables of a pod; the clients follow them. All else in the Variables stays as it is: Secrets may have
// changed since, or be gone, and the job refers to the items that were there when it was made.
func (p *provider) renew(ctx context.Context, e *entry) error {
	p.store.mu.Lock()
	pod := e.pod
	p.store.mu.Unlock()
	tokens, again, err := p.freshTokens(ctx, pod)
	if err != nil {
		return err
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if err := p.replaceTokens(ctx, variablePath(e.jobID, list[i].Name), &list[i], tokens); err != nil {
				return err
			}
		}
	}
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	e.again = again
	return nil
}

// freshTokens are new tokens of a pod, by volume, and when they are to be replaced.
func (p *provider) freshTokens(ctx context.Context, pod *corev1.Pod) (files map[string][]podspec.File, again time.Time, err error) {
	files = map[string][]podspec.File{}
	sources := podspec.Sources{Objects: p.objects, Tokens: p.tokens}
	for i := range pod.Spec.Volumes {
		v := onlyTokens(&pod.Spec.Volumes[i])
		if v == nil {
			continue
		}
		list, renew, err := sources.Files(ctx, pod, v, field.NewPath("spec", "volumes").Index(i))
		if err != nil {
			return nil, again, err
		}
		files[v.Name] = list
		if again.IsZero() || !renew.IsZero() && renew.Before(again) {
			again = renew
		}
	}
	return files, again, nil
}

// replaceTokens writes the tokens that a container mounts into its Variable.
func (p *provider) replaceTokens(ctx context.Context, at string, c *corev1.Container, tokens map[string][]podspec.File) error {
	items := map[string]string{}
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		for _, f := range tokens[m.Name] {
			items[itemName(path.Join(secretDir(m), f.Path))] = base64.StdEncoding.EncodeToString(f.Data)
		}
	}
	if len(items) == 0 {
		return nil
	}
	v, err := p.client.variable(ctx, at)
	if err != nil {
		return err
	}
	for item, value := range items {
		if _, ok := v.Items[item]; !ok {
			return fmt.Errorf("the Variable %s has no item %s for a token of container %s", at, item, c.Name)
		}
		v.Items[item] = value
	}
	return p.client.put(ctx, v)
}

// onlyTokens is a volume without what is no token; nil if it has none.
func onlyTokens(v *corev1.Volume) *corev1.Volume {
	if v.Projected == nil {
		return nil
	}
	v = v.DeepCopy()
	v.Projected.Sources = slices.DeleteFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken == nil })
	if len(v.Projected.Sources) == 0 {
		return nil
	}
	return v
}

// hasToken reports whether a pod has tokens that end.
func hasToken(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return onlyTokens(&v) != nil })
}
