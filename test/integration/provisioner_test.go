// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/virtual-kubelet/virtual-kubelet/internal/rbac"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// roomy is a provider with room for volumes in a directory.
type roomy struct {
	notifying
	dir string
}

func (roomy) ProvisionsVolumes() bool { return true }

func (r roomy) MakeVolume(_ context.Context, name string) (string, error) {
	path := filepath.Join(r.dir, name)
	return path, os.MkdirAll(path, 0o755)
}

func (r roomy) RemoveVolume(_ context.Context, name string) error {
	return os.RemoveAll(filepath.Join(r.dir, name))
}

// TestClaimsGetVolumes: with the scheduler and the controllers of Kubernetes, a claim gets a volume on the node.
// The node has no more rights than the manifest gives it.
func TestClaimsGetVolumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.asNode()
	dir := t.TempDir()
	w.provider = func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return roomy{notifying{polled{Backend: w.backend, changed: w.changed}}, dir}, nil, nil
	}
	s := rbac.Subject{Name: w.nodeName, Namespace: w.namespace, Nodes: []string{w.nodeName}}
	w.apply(rbac.Provisioner(s))
	w.start()
	class := s.Name + "-local-path"
	claims, volumes := w.client().CoreV1().PersistentVolumeClaims(w.namespace), w.client().CoreV1().PersistentVolumes()
	claim, err := claims.Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := w.pod("web")
	pod.Spec.NodeName = ""
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	w.startPod(pod)
	name := "pvc-" + string(claim.UID)
	if got, err := volumes.Get(t.Context(), name, metav1.GetOptions{}); err != nil || got.Status.Phase != corev1.VolumeBound || got.Spec.Local.Path != filepath.Join(dir, name) {
		t.Errorf("got %+v, %v, want a volume that is bound", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
		t.Error(err)
	}
	w.onlyOwnVolumes()
	w.remove("web", atOnce())
	w.awaitEmptyBackend()
	if err := claims.Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.poll("the volume is gone", func() bool {
		_, err := volumes.Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if _, err := os.Stat(filepath.Join(dir, name)); !os.IsNotExist(err) {
		t.Errorf("the directory is left: %v", err)
	}
}

// onlyOwnVolumes checks that the policy forbids foreign volumes, although the node's role allows them.
func (w *world) onlyOwnVolumes() {
	w.Helper()
	node, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		w.Fatal(err)
	}
	local := corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/volumes/x"}}
	try := func(source corev1.PersistentVolumeSource, label, host string) error {
		_, err := node.CoreV1().PersistentVolumes().Create(w.Context(), &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "try-", Labels: map[string]string{"virtual-kubelet.io/node": label}},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeSource: source, NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{host}}},
				}}}},
			},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	hostPath := corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}}
	w.poll("the policy holds", func() bool {
		return apierrors.IsInvalid(try(hostPath, w.nodeName, w.nodeName)) || apierrors.IsForbidden(try(hostPath, w.nodeName, w.nodeName))
	})
	if err := try(local, w.nodeName, w.nodeName); err != nil {
		w.Errorf("a local volume of its own: %v", err)
	}
	for what, err := range map[string]error{
		"on another node":   try(local, w.nodeName, "another"),
		"as another node's": try(local, "another", w.nodeName),
	} {
		if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			w.Errorf("a local volume %s: %v", what, err)
		}
	}
}
