// SPDX-License-Identifier: Apache-2.0

package node

import (
	"hash/maphash"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// metadata are the two maps of a pod that a provider may change.
type metadata struct{ labels, annotations map[string]string }

func metadataOf(pod *corev1.Pod) metadata { return metadata{pod.Labels, pod.Annotations} }

// handed is what the backend was given of a pod's metadata, now and before: a
// report repeats it, sometimes long after users have changed it, and what is
// repeated is not the provider's own.
type handed struct {
	metadata                // what the backend was given last, with the provider's own changes that were written since
	before   []uint64       // hashes of the entries that others replaced, the newest last
	writing  metadataChange // of the provider, on its way to the API server
	known    bool           // after a restart nobody knows what the backend was given until it shows it
}

// metadataChange sets labels and annotations; a nil value removes.
type metadataChange struct{ labels, annotations map[string]*string }

func (c *metadataChange) any() bool { return len(c.labels) > 0 || len(c.annotations) > 0 }

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
	h.metadata, h.known = m, true
}

// inherit notes that this process before a restart gave the backend what it has and what it
// has told so far.
func (st syncWriter) inherit(backend *corev1.Pod) {
	if st.handed.known {
		return
	}
	if st.all.report.matches(st.sent.UID) {
		st.handed.add(st.all.report.metadata)
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

// told is what the backend knows of the labels and annotations of the pod.
func (st *podState) told(api *corev1.Pod) lifecycle.Told {
	h := &st.handed
	return lifecycle.Told{
		Labels: h.labels, Annotations: h.annotations,
		WritingLabels: h.writing.labels, WritingAnnotations: h.writing.annotations,
		Behind: api != nil && st.newer(api, time.Now()) != api,
	}
}

// providers returns what the provider has changed and the API server does not have yet.
func (st *podState) providers(api *corev1.Pod) metadataChange {
	if !st.report.matches(api.UID) || !st.handed.known {
		return metadataChange{} // what it repeats cannot be told from what it changed
	}
	return metadataChange{
		lifecycle.MetadataDiff(st.report.labels, api.Labels, st.handed.hadLabel, st.own.labels),
		lifecycle.MetadataDiff(st.report.annotations, api.Annotations, st.handed.hadAnnotation, st.own.annotations),
	}
}

// withProviders returns copies of the labels and annotations of the pod, with what the provider
// has changed meanwhile: an update must not take that back.
func (st *podState) withProviders(api *corev1.Pod) (labels, annotations map[string]string) {
	change := st.providers(api)
	return maps.Clone(lifecycle.Changed(api.Labels, change.labels)), maps.Clone(lifecycle.Changed(api.Annotations, change.annotations))
}

// landed notes the provider's change that was written without an answer, if the API server has it.
func (st statusWriter) landed(api *corev1.Pod) {
	w := st.handed.writing
	if !w.any() {
		return
	}
	if has := (metadataChange{taken(api.Labels, w.labels), taken(api.Annotations, w.annotations)}); has.any() {
		st.wrote(has)
	}
}

// taken returns what of the change is in m.
func taken(m map[string]string, change map[string]*string) map[string]*string {
	out := maps.Clone(change)
	maps.DeleteFunc(out, func(k string, want *string) bool {
		now, has := m[k]
		return has != (want != nil) || has && now != *want
	})
	return out
}

// wrote notes that the API server has the provider's change: it is what both sides have.
func (st statusWriter) wrote(change metadataChange) {
	st.handed.labels = lifecycle.Changed(st.handed.labels, change.labels)
	st.handed.annotations = lifecycle.Changed(st.handed.annotations, change.annotations)
	st.own.labels = lifecycle.Changed(st.own.labels, change.labels)
	st.own.annotations = lifecycle.Changed(st.own.annotations, change.annotations)
	st.handed.writing = metadataChange{}
}
