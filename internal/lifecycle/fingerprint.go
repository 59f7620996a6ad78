// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"hash/maphash"

	corev1 "k8s.io/api/core/v1"
)

var seed = maphash.MakeSeed()

// Fingerprint stands for everything of a pod that the backend is told about
// with UpdatePod: the spec (by its generation), the labels and the annotations.
// It is good within one process only.
func Fingerprint(pod *corev1.Pod) uint64 {
	sum := uint64(pod.Generation)
	if pod.Generation == 0 { // an API server older than pod generations
		sum = specHash(&pod.Spec)
	}
	// Order must not matter, so the pairs are summed up.
	for k, v := range pod.Labels {
		sum += pairHash('l', k, v)
	}
	for k, v := range pod.Annotations {
		sum += pairHash('a', k, v)
	}
	return sum
}

func pairHash(kind byte, k, v string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_ = h.WriteByte(kind)
	_, _ = h.WriteString(k)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(v)
	return h.Sum64()
}

func specHash(spec *corev1.PodSpec) uint64 {
	b, err := json.Marshal(spec)
	if err != nil {
		panic(fmt.Sprintf("pod spec does not marshal: %v", err)) // it came from JSON
	}
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64()
}

// adoptable reports whether the backend has the pod as the API server has it:
// no generation was missed while nobody watched, and the backend's copy agrees
// as far as it goes. Backends drop fields, so what the copy lacks says nothing.
func adoptable(api, backend *corev1.Pod) bool {
	if observed := api.Status.ObservedGeneration; observed != 0 && observed < api.Generation {
		return false
	}
	images := map[string]string{}
	for _, c := range backend.Spec.Containers {
		images[c.Name] = c.Image
	}
	for _, c := range api.Spec.Containers {
		if image := images[c.Name]; image != "" && image != c.Image {
			return false
		}
	}
	return covers(backend.Labels, api.Labels) && covers(backend.Annotations, api.Annotations)
}

// covers reports whether have, unless it is empty, has everything of want.
func covers(have, want map[string]string) bool {
	if len(have) == 0 {
		return true
	}
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}
