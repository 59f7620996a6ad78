// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// Told is the backend's knowledge of the labels and annotations of the pod in the API server. Changes that the provider itself wrote to the
// pod do not count as changes when they come back from the API server.
type Told struct {
	// Labels and Annotations are the entries that both sides know: the entries that the backend received, and the provider's own changes
	// that the API server has accepted since.
	Labels, Annotations map[string]string
	// WritingLabels and WritingAnnotations are the changes of the provider that are being written. The API
	// server may have them already. A nil value removes the key.
	WritingLabels, WritingAnnotations map[string]*string
	// Behind means that the cached pod is older than the last write to it, so it must not be compared.
	Behind bool
}

// knows reports whether the backend knows the labels and annotations of the pod.
func (t *Told) knows(pod *corev1.Pod) bool {
	return t.Behind || knowsAll(pod.Labels, t.Labels, t.WritingLabels) && knowsAll(pod.Annotations, t.Annotations, t.WritingAnnotations)
}

func knowsAll(api, told map[string]string, writing map[string]*string) bool {
	same := 0
	for k, v := range api {
		if was, has := told[k]; has && was == v {
			same++
			continue
		}
		if set := writing[k]; set == nil || *set != v {
			return false
		}
	}
	if same == len(told) {
		return true
	}
	for k := range told {
		if _, has := api[k]; has {
			continue
		}
		if set, has := writing[k]; !has || set != nil {
			return false
		}
	}
	return true
}

// MetadataDiff returns the provider's changes to the labels or annotations that it received. A change is a key that the provider added, set
// to another value, or removed again after adding it with the value in own. Three differences are not changes: a missing key, because the
// provider may not store keys; a value that the provider received at any time, because it is a late repetition; and a key that another
// writer has changed since. Keys that already have the wanted value in the API server are left out.
func MetadataDiff(reported, api map[string]string, handed func(k, v string) bool, own map[string]string) map[string]*string {
	d := map[string]*string{}
	for k, v := range reported {
		if now, ok := api[k]; (!ok || now != v) && !handed(k, v) {
			d[k] = &v
		}
	}
	for k, v := range own {
		if _, still := reported[k]; still {
			continue
		}
		if now, ok := api[k]; ok && now == v {
			d[k] = nil
		}
	}
	return d
}

// Changed returns a copy of m with the change applied, or m itself if the change is empty.
func Changed(m map[string]string, change map[string]*string) map[string]string {
	if len(change) == 0 {
		return m
	}
	after := make(map[string]string, len(m)+len(change))
	maps.Copy(after, m)
	for k, v := range change {
		if v == nil {
			delete(after, k)
		} else {
			after[k] = *v
		}
	}
	return after
}
