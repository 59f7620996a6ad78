// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// Told is the backend's knowledge about the labels and annotations of the pod in the API server. Changes that
// the provider wrote to the pod come back from the API server. They do not count as changes.
type Told struct {
	// Labels and Annotations are the entries on both sides: the entries that the backend was given, and the
	// provider's own changes that the API server has taken since.
	Labels, Annotations map[string]string
	// WritingLabels and WritingAnnotations are the changes of the provider that are being written. The API
	// server may have them already. A nil value removes the key.
	WritingLabels, WritingAnnotations map[string]*string
	// Behind reports whether the pod is older than the last write to it. Such a pod must not be compared.
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

// MetadataDiff returns the provider's changes to the labels or annotations that it was handed. A change is a key
// that the provider added or set to another value. A key that the provider had added, with the value in own, and
// dropped again is a change, too. Three differences are no changes. A missing key may never have been kept. A
// value that was handed to the provider at any time is a late repetition. A key that another writer has changed
// since belongs to that writer. Keys that already have the wanted value in the API server are left out.
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

// Changed returns m with a change: m itself if there is no change, else a copy.
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
