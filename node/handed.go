// SPDX-License-Identifier: Apache-2.0

package node

import (
	"hash/maphash"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// metadata are the two maps of a pod that a provider may change.
type metadata struct{ labels, annotations map[string]string }

// handed is the metadata of a pod that the backend received, now and before. A report may repeat such metadata long after users have
// changed it, so repeated entries are not the provider's own changes.
type handed struct {
	metadata                // the last metadata for the backend, with the provider's own changes that were written since
	before   []uint64       // hashes of replaced entries, the newest last
	writing  metadataChange // the provider's change that is being written to the API server
	known    bool           // false after a restart, until the backend shows its metadata
}

// metadataChange sets labels and annotations; a nil value removes the key.
type metadataChange struct{ labels, annotations map[string]*string }

// handedLimit is the number of replaced entries that are remembered.
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

func metadataOf(pod *corev1.Pod) metadata { return metadata{pod.Labels, pod.Annotations} }

func (c *metadataChange) any() bool { return len(c.labels) > 0 || len(c.annotations) > 0 }

func (e metadataEntry) hash() uint64 { return maphash.Comparable(metadataSeed, e) }

// addGiven records that the backend receives m.
func (h *handed) addGiven(m metadata) {
	h.replaceEntries(labelEntry, h.labels, m.labels)
	h.replaceEntries(annotationEntry, h.annotations, m.annotations)
	h.metadata, h.known = m, true
}

func (h *handed) replaceEntries(kind byte, old, now map[string]string) {
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

// changesIn returns the part of the change that m contains.
func changesIn(m map[string]string, change map[string]*string) map[string]*string {
	out := maps.Clone(change)
	maps.DeleteFunc(out, func(k string, want *string) bool {
		now, has := m[k]
		return has != (want != nil) || has && now != *want
	})
	return out
}
