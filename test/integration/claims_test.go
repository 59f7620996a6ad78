// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// claiming is a provider that mounts PersistentVolumes.
type claiming struct {
	notifying
	claims *node.PodClaims
}

func (p claiming) UsePodClaims(c node.PodClaims) { *p.claims = c }

// localVolume creates a PersistentVolume on a node, and a claim that is bound to this volume.
func (w *world) localVolume(name, onNode string) {
	w.Helper()
	room := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	full := w.namespace + "-" + name
	volumes := w.client().CoreV1().PersistentVolumes()
	_, err := volumes.Create(w.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: full}, Spec: corev1.PersistentVolumeSpec{
		Capacity: room, AccessModes: modes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/disks/" + name}},
		ClaimRef:               &corev1.ObjectReference{Namespace: w.namespace, Name: name},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{onNode}}},
		}}}},
	}}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := volumes.Delete(context.WithoutCancel(w.Context()), full, metav1.DeleteOptions{}); err != nil {
			w.Error(err)
		}
	})
	claims := w.client().CoreV1().PersistentVolumeClaims(w.namespace)
	_, err = claims.Create(w.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: modes, StorageClassName: ptr.To(""), VolumeName: full, Resources: corev1.VolumeResourceRequirements{Requests: room},
	}}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.poll("the claim is bound", func() bool {
		claim, err := claims.Get(w.Context(), name, metav1.GetOptions{})
		return err == nil && claim.Status.Phase == corev1.ClaimBound
	})
}

// TestClaimsOfPods: a node that has only its own identity can read the claims of its pods.
func TestClaimsOfPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.asNode()
	var claims node.PodClaims
	w.provider = func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return claiming{notifying{polled{Backend: w.backend, changed: w.changed}}, &claims}, nil, nil
	}
	w.start()
	w.localVolume("here", w.nodeName)
	w.localVolume("there", "another-node")
	pod := w.pod("web")
	for _, name := range []string{"here", "there", "none"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "v-" + name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
	pod = w.startPod(pod)
	got, err := claims.PersistentVolume(t.Context(), pod, "v-here")
	if err != nil || got.Spec.Local == nil || got.Spec.Local.Path != "/disks/here" {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = claims.PersistentVolume(t.Context(), pod, "v-there")
	if want := `MountVolume.NodeAffinity check failed for volume "` + w.namespace + `-there" : no matching NodeSelectorTerms`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = claims.PersistentVolume(t.Context(), pod, "v-none")
	if want := "error processing PVC " + w.namespace + `/none: failed to fetch PVC from API server: persistentvolumeclaims "none" not found`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	w.remove("web", atOnce())
	w.awaitEmptyBackend()
	w.poll("a pod that is gone does not get its volume", func() bool { // the backend is empty before the node has seen that
		_, err := claims.PersistentVolume(t.Context(), pod, "v-here")
		return errdefs.IsNotFound(err)
	})
	w.allowed()
}
