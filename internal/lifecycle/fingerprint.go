// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// SpecVersion returns a number that changes with the spec of a pod.
func SpecVersion(pod *corev1.Pod) uint64 {
	if pod.Generation == 0 { // an API server older than pod generations
		return specHash(&pod.Spec)
	}
	return uint64(pod.Generation)
}

func specHash(spec *corev1.PodSpec) uint64 {
	b, err := json.Marshal(spec)
	if err != nil {
		panic(fmt.Sprintf("pod spec does not marshal: %v", err)) // it was decoded from JSON
	}
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64()
}

// adoptable reports whether the backend has the current version of the pod in the API server. No generation may have been missed during a
// restart, and the fields of the backend's copy must match. Backends drop fields, so a missing field proves nothing. Backends also rename
// images, so image names are compared only if the backend's generation is unknown. This includes a pod after failed creates, because each
// of them may have created the pod with its spec of that time.
func adoptable(api, backend *corev1.Pod, sent *Sent) bool {
	switch observed := api.Status.ObservedGeneration; {
	case observed != 0 && observed < api.Generation:
		return false
	case (observed == 0 || sent.Attempted) && !sameImages(api, backend):
		return false
	}
	return covers(backend.Labels, api.Labels) && covers(backend.Annotations, api.Annotations)
}

func sameImages(api, backend *corev1.Pod) bool {
	images := map[string]string{}
	for _, c := range backend.Spec.Containers {
		images[c.Name] = c.Image
	}
	for _, c := range api.Spec.Containers {
		if image := images[c.Name]; image != "" && fullImage(image) != fullImage(c.Image) {
			return false
		}
	}
	return true
}

// fullImage returns the full name of an image with the defaults filled in: x becomes docker.io/library/x:latest.
func fullImage(image string) string {
	host, rest, found := strings.Cut(image, "/")
	if !found || !strings.ContainsAny(host, ".:") && host != "localhost" {
		host, rest = "docker.io", image
	}
	if host == "docker.io" && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	if !strings.ContainsAny(rest[strings.LastIndex(rest, "/")+1:], ":@") {
		rest += ":latest"
	}
	return host + "/" + rest
}

// covers reports whether have contains every entry of want. It also returns true if have contains none of the keys, because the backend
// then does not store them.
func covers(have, want map[string]string) bool {
	kept, missing := false, false
	for k, v := range want {
		got, has := have[k]
		if has && got != v {
			return false
		}
		kept, missing = kept || has, missing || !has
	}
	return !kept || !missing
}
