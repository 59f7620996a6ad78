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

// labelsAgain is the time for which a refused change of labels is not sent again. After that, it is sent with the next change of the pod.
const labelsAgain = 5 * time.Minute

// inheritMetadata assumes that an earlier process gave the backend its present metadata and the reported metadata.
func (st syncWriter) inheritMetadata(backend *corev1.Pod) {
	if st.handed.known {
		return
	}
	if st.all.report.matches(st.sent.UID) {
		st.handed.addGiven(st.all.report.metadata)
	}
	st.handed.addGiven(metadata{maps.Clone(backend.Labels), maps.Clone(backend.Annotations)})
	st.copied = backend.ResourceVersion
}

// isStale reports whether a pod in a provider's report is an older copy than the copy that the backend had when
// the pod was found. The labels and annotations of an older copy are outdated; other writers may have changed
// them since.
func (st *podState) isStale(version string) bool {
	order, err := resourceversion.CompareResourceVersion(version, st.copied)
	return err == nil && order < 0
}

// toldMetadata returns the backend's knowledge about the labels and annotations of the pod.
func (st *podState) toldMetadata(api *corev1.Pod) lifecycle.Told {
	h := &st.handed
	return lifecycle.Told{
		Labels: h.labels, Annotations: h.annotations,
		WritingLabels: h.writing.labels, WritingAnnotations: h.writing.annotations,
		Behind: api != nil && st.newestOf(api, time.Now()) != api,
	}
}

// changedByProvider returns the provider's changes that the API server does not have yet.
func (st *podState) changedByProvider(api *corev1.Pod) metadataChange {
	if !st.report.matches(api.UID) || !st.handed.known {
		return metadataChange{} // repeated entries cannot be distinguished from changes
	}
	return metadataChange{
		lifecycle.MetadataDiff(st.report.labels, api.Labels, st.handed.hadLabel, st.own.labels),
		lifecycle.MetadataDiff(st.report.annotations, api.Annotations, st.handed.hadAnnotation, st.own.annotations),
	}
}

// metadataToWrite returns the provider's changes, without labels that the API server has recently refused.
func (st *podState) metadataToWrite(api *corev1.Pod) metadataChange {
	change := st.changedByProvider(api)
	if time.Since(st.labelsRefusedAt) < labelsAgain && maps.EqualFunc(change.labels, st.labelsRefused, ptr.Equal) {
		change.labels = nil
	}
	return change
}

// refuseLabels records a refusal of the labels by the API server. The identity of a node may not change the labels of
// its pods, and the statuses of the pods must not wait for these labels.
func (st statusWriter) refuseLabels(labels map[string]*string) {
	st.labelsRefused, st.labelsRefusedAt, st.handed.writing.labels = labels, time.Now(), nil
}

// withProviders returns copies of the labels and annotations of the pod that include the provider's changes, because an update must not
// undo these changes.
func (st *podState) withProviders(api *corev1.Pod) (labels, annotations map[string]string) {
	change := st.changedByProvider(api)
	return maps.Clone(lifecycle.Changed(api.Labels, change.labels)), maps.Clone(lifecycle.Changed(api.Annotations, change.annotations))
}

// recordLanded records that a change of the provider was written, if the write had no response but the API server has the change.
func (st statusWriter) recordLanded(api *corev1.Pod) {
	w := st.handed.writing
	if !w.any() {
		return
	}
	if has := (metadataChange{changesIn(api.Labels, w.labels), changesIn(api.Annotations, w.annotations)}); has.any() {
		st.recordWritten(has)
	}
}

// recordWritten records that both sides have the provider's change.
func (st statusWriter) recordWritten(change metadataChange) {
	st.handed.labels = lifecycle.Changed(st.handed.labels, change.labels)
	st.handed.annotations = lifecycle.Changed(st.handed.annotations, change.annotations)
	st.own.labels = lifecycle.Changed(st.own.labels, change.labels)
	st.own.annotations = lifecycle.Changed(st.own.annotations, change.annotations)
	st.handed.writing = metadataChange{}
}
