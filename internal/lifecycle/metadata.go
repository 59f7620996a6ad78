// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// Told is what the backend knows of the labels and annotations of the pod in the API server.
// What the provider itself wrote to the pod comes back from there, and is no change.
type Told struct {
	// Labels and Annotations are what both sides have: what the backend was given, with what the
	// API server has taken since of the provider's own changes.
	Labels, Annotations map[string]string
	// WritingLabels and WritingAnnotations are changes of the provider that are being written: the API
	// server may have them already. A nil value removes.
	WritingLabels, WritingAnnotations map[string]*string
	// Behind says that the pod is older than the last write to it, and so nothing to compare with.
	Behind bool
}

// knows reports whether the backend knows the labels and annotations of the pod.
func (t *Told) knows(pod *corev1.Pod) bool {
	return t.Behind || known(pod.Labels, t.Labels, t.WritingLabels) && known(pod.Annotations, t.Annotations, t.WritingAnnotations)
}

func known(api, told map[string]string, writing map[string]*string) bool {
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

// MetadataDiff returns what the provider changed in the labels or annotations
// that it was handed: keys that it added or set to another value, and keys
// that it had added, with the values in own, and dropped again. What it merely lacks it may
// never have kept, a value that it was handed at any time it only repeats, late, and
// what others have changed since is theirs.
// Keys that the API server's pod has already as wanted are left out.
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

// Changed returns m with a change: itself if there is none, else a copy.
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
