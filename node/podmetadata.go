// SPDX-License-Identifier: Apache-2.0

package node

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// labelsAgain is for how long a change of labels that was refused is not sent again. It is then sent with the next news of the pod.
const labelsAgain = 5 * time.Minute

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

// told is what the backend knows of the labels and annotations of the pod.
func (st *podState) told(api *corev1.Pod) lifecycle.Told {
	h := &st.handed
	return lifecycle.Told{
		Labels: h.labels, Annotations: h.annotations,
		WritingLabels: h.writing.labels, WritingAnnotations: h.writing.annotations,
		Behind: api != nil && st.newer(api, time.Now()) != api,
	}
}

// changedByProvider returns what the provider has changed and the API server does not have yet.
func (st *podState) changedByProvider(api *corev1.Pod) metadataChange {
	if !st.report.matches(api.UID) || !st.handed.known {
		return metadataChange{} // what it repeats cannot be told from what it changed
	}
	return metadataChange{
		lifecycle.MetadataDiff(st.report.labels, api.Labels, st.handed.hadLabel, st.own.labels),
		lifecycle.MetadataDiff(st.report.annotations, api.Annotations, st.handed.hadAnnotation, st.own.annotations),
	}
}

// metadataToWrite is what the provider has changed, without labels that the API server refused a while ago.
func (st *podState) metadataToWrite(api *corev1.Pod) metadataChange {
	change := st.changedByProvider(api)
	if time.Since(st.labelsRefusedAt) < labelsAgain && maps.EqualFunc(change.labels, st.labelsRefused, ptr.Equal) {
		change.labels = nil
	}
	return change
}

// refused notes that the API server does not take the labels: the identity of a node may not change those of its pods, and
// their statuses must not wait for that.
func (st statusWriter) refused(labels map[string]*string) {
	st.labelsRefused, st.labelsRefusedAt, st.handed.writing.labels = labels, time.Now(), nil
}

// withProviders returns copies of the labels and annotations of the pod, with what the provider
// has changed meanwhile: an update must not take that back.
func (st *podState) withProviders(api *corev1.Pod) (labels, annotations map[string]string) {
	change := st.changedByProvider(api)
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

// wrote notes that the API server has the provider's change: it is what both sides have.
func (st statusWriter) wrote(change metadataChange) {
	st.handed.labels = lifecycle.Changed(st.handed.labels, change.labels)
	st.handed.annotations = lifecycle.Changed(st.handed.annotations, change.annotations)
	st.own.labels = lifecycle.Changed(st.own.labels, change.labels)
	st.own.annotations = lifecycle.Changed(st.own.annotations, change.annotations)
	st.handed.writing = metadataChange{}
}
