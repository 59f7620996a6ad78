// SPDX-License-Identifier: Apache-2.0

package node

import (
	"hash/maphash"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// metadata are the two maps of a pod that a provider may change.
type metadata struct{ labels, annotations map[string]string }

func metadataOf(pod *corev1.Pod) metadata { return metadata{pod.Labels, pod.Annotations} }

// handed is what the backend was given of a pod's metadata, now and before: a
// report repeats it, sometimes long after users have changed it, and what is
// repeated is not the provider's own.
type handed struct {
	metadata
	before []uint64 // hashes of the entries that were replaced, the newest last
}

// handedLimit is how many replaced entries are remembered.
const handedLimit = 256

var metadataSeed = maphash.MakeSeed()

type metadataEntry struct {
	kind       byte
	key, value string
}

const (
	labelEntry      = 'l'
	annotationEntry = 'a'
)

func (e metadataEntry) hash() uint64 { return maphash.Comparable(metadataSeed, e) }

// add notes that the backend is given m.
func (h *handed) add(m metadata) {
	h.replace(labelEntry, h.labels, m.labels)
	h.replace(annotationEntry, h.annotations, m.annotations)
	h.metadata = m
}

// inherit notes that a former life of this process gave the backend what it has and what it
// has told so far.
func (st *podState) inherit(backend *corev1.Pod) {
	if st.sent.Attempted {
		return
	}
	if st.report.about(st.sent.UID) {
		st.handed.add(st.report.metadata)
	}
	st.handed.add(metadata{maps.Clone(backend.Labels), maps.Clone(backend.Annotations)})
	st.copied = backend.ResourceVersion
}

// stale reports whether a pod that the provider reports is an older copy than the one
// that the backend had when it was found: its labels and annotations are of then, and
// others may have changed them since.
func (st *podState) stale(version string) bool {
	order, err := resourceversion.CompareResourceVersion(version, st.copied)
	return err == nil && order < 0
}

func (h *handed) replace(kind byte, old, now map[string]string) {
	for k, v := range old {
		if other, has := now[k]; has && other == v {
			continue
		}
		if e := (metadataEntry{kind, k, v}).hash(); !slices.Contains(h.before, e) {
			h.before = append(h.before, e)
		}
	}
	if extra := len(h.before) - handedLimit; extra > 0 {
		h.before = slices.Clone(h.before[extra:])
	}
}

func (h *handed) hadLabel(k, v string) bool {
	now, has := h.labels[k]
	return has && now == v || slices.Contains(h.before, metadataEntry{labelEntry, k, v}.hash())
}

func (h *handed) hadAnnotation(k, v string) bool {
	now, has := h.annotations[k]
	return has && now == v || slices.Contains(h.before, metadataEntry{annotationEntry, k, v}.hash())
}

// ownedKeys are the keys that the provider itself added to a pod.
type ownedKeys struct{ labels, annotations map[string]bool }

// ownedAfter returns the keys that the provider has added, after a change.
func ownedAfter(own map[string]bool, change map[string]*string) map[string]bool {
	if len(change) == 0 {
		return own
	}
	after := make(map[string]bool, len(own)+len(change))
	for k := range own {
		after[k] = true
	}
	for k, v := range change {
		if v == nil {
			delete(after, k)
		} else {
			after[k] = true
		}
	}
	return after
}
