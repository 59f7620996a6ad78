// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// bound maps the volumes of a pod to PersistentVolumes at home.
type bound map[string]*corev1.PersistentVolume

// PersistentVolume implements node.PodClaims.
func (b bound) PersistentVolume(_ context.Context, _ *corev1.Pod, volume string) (*corev1.PersistentVolume, error) {
	if b[volume] == nil {
		return nil, errors.New("PVC is not bound")
	}
	return b[volume], nil
}

func volumeAtHome(class, path string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-of-" + class}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
		ClaimRef: &corev1.ObjectReference{Namespace: "default", Name: "data", UID: types.UID("uid-of-" + class)},
	}}
	if path != "" {
		v.Spec.Local = &corev1.LocalVolumeSource{Path: path}
	}
	return v
}

func claiming(pod *corev1.Pod, claim string) *corev1.Pod {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	return pod
}

// TestClaimsOfMappedClasses checks that a claim at home has a claim of another class in the lower cluster, as
// long as the claim at home exists.
func TestClaimsOfMappedClasses(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "claims", "vk-0")
	u.config.StorageClasses = map[string]string{"slow": "cheap", "elsewhere": "cheap"}
	u.asTheReadmeSays()
	p, _ := u.start()
	path, err := p.MakeVolume(t.Context(), "pvc-of-slow")
	if err != nil || !p.ProvisionsVolumes() {
		t.Fatalf("MakeVolume: %q, %v", path, err)
	}
	pod := claiming(u.Pod("default", "web", stays()), "data")
	for what, tt := range map[string]struct {
		volume *corev1.PersistentVolume
		says   string
		final  bool
	}{
		"not bound yet":         {nil, "PVC is not bound", false},
		"a class without other": {volumeAtHome("fast", path), `storageClassName "fast"`, true},
		"data that stays":       {volumeAtHome("elsewhere", "/mnt/disk"), "stays in this cluster", true},
	} {
		p.UsePodClaims(bound{"data": tt.volume})
		err := p.CreatePod(t.Context(), pod.DeepCopy())
		if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), `volume "data"`) || errdefs.IsInvalidInput(err) != tt.final {
			t.Errorf("%s: got %v, want an error about %s", what, err, tt.says)
		}
	}
	p.UsePodClaims(bound{"data": volumeAtHome("slow", path)})
	u.Create(p, pod)
	remote := u.remote(pod)
	claims := w.API.Client.CoreV1().PersistentVolumeClaims(remote.Namespace)
	got, err := claims.Get(t.Context(), remote.Spec.Volumes[0].PersistentVolumeClaim.ClaimName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if size := got.Spec.Resources.Requests[corev1.ResourceStorage]; *got.Spec.StorageClassName != "cheap" || size.String() != "2Gi" || len(got.Spec.AccessModes) != 1 {
		t.Errorf("the claim in the lower cluster is %+v", got.Spec)
	}
	u.line.Writes()
	pod = pod.DeepCopy()
	pod.Labels["app"] = "changed"
	p.UsePodClaims(bound{}) // an existing pod needs nothing of home
	if err := p.UpdatePod(t.Context(), pod.DeepCopy()); err != nil {
		t.Errorf("UpdatePod: %v", err)
	}
	p.UsePodClaims(bound{"data": volumeAtHome("slow", path)})
	next := claiming(u.Pod("default", "next", stays()), "data")
	u.Create(p, next)
	if name := u.remote(next).Spec.Volumes[0].PersistentVolumeClaim.ClaimName; name != got.Name {
		t.Errorf("the next pod of the claim has %s over there, want %s", name, got.Name)
	}
	for _, pod := range []*corev1.Pod{pod, next} {
		u.Delete(p, pod)
		u.UntilGone(p, pod)
	}
	u.refreshed(p)
	if now, err := claims.Get(t.Context(), got.Name, metav1.GetOptions{}); err != nil || now.UID != got.UID || now.DeletionTimestamp != nil {
		t.Errorf("after its pods the claim is %v (%v), want it as it was", now, err)
	}
	for range 2 { // the second time there is none
		if err := p.RemoveVolume(t.Context(), "pvc-of-slow"); err != nil {
			t.Errorf("RemoveVolume: %v", err)
		}
	}
	u.Until("the claim is gone", func() (bool, string) {
		_, err := claims.Get(t.Context(), got.Name, metav1.GetOptions{})
		return err != nil, fmt.Sprint(err)
	})
}

// TestWholeNodeWithClaims has two real clusters with their schedulers and volume controllers. A pod with a claim
// at home runs in the lower cluster on a volume of that cluster, and the lower claim is removed with the claim
// at home.
func TestWholeNodeWithClaims(t *testing.T) {
	w, api := startWorker(t, testapi.Start(t)), testapi.New(t, testapi.Options{})
	u, name, ns := remotetest.NewHome(t, ""), "claiming-node", api.Namespace(t)
	class := w.API.NodeName(t)
	_ = startNode(t, api, w, name, &remotetest.Line{}, func(c *Config) { c.StorageClasses = map[string]string{"remote": class} })
	for of, c := range map[*testapi.API]*storagev1.StorageClass{
		api:   {ObjectMeta: metav1.ObjectMeta{Name: "remote"}, Provisioner: "virtual-kubelet.io/local-path", VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)},
		w.API: {ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "kubernetes.io/no-provisioner"},
	} {
		if _, err := of.Client.StorageV1().StorageClasses().Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.API.Client.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/none"}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Client.CoreV1().PersistentVolumeClaims(ns).Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: ptr.To("remote"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To(int64(1)), Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{Name: "main", Image: "program", Args: program.Program{Stay: program.Forever}.Args()}},
	}}
	if _, err := api.Client.CoreV1().Pods(ns).Create(t.Context(), claiming(pod, "data"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	u.Until("the pod runs", func() (bool, string) {
		got, err := api.Client.CoreV1().Pods(ns).Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && got.Status.Phase == corev1.PodRunning, fmt.Sprint(got.Status, err)
	})
	mine := metav1.ListOptions{LabelSelector: homeOfTest(name)}
	there := func() []corev1.PersistentVolumeClaim {
		list, err := w.API.Client.CoreV1().PersistentVolumeClaims("").List(t.Context(), mine)
		if err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	if got := there(); len(got) != 1 || got[0].Status.Phase != corev1.ClaimBound || got[0].Spec.VolumeName != class {
		t.Errorf("the lower cluster has the claims %v, want one that is bound to %s", got, class)
	}
	if err := api.Client.CoreV1().Pods(ns).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	u.Until("the pod is gone", func() (bool, string) {
		_, err := api.Client.CoreV1().Pods(ns).Get(t.Context(), "web", metav1.GetOptions{})
		return err != nil, fmt.Sprint(err)
	})
	if got := there(); len(got) != 1 || got[0].DeletionTimestamp != nil {
		t.Errorf("without the pod the lower cluster has the claims %v, want the one", got)
	}
	if err := api.Client.CoreV1().PersistentVolumeClaims(ns).Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	u.Until("the claim is gone over there", func() (bool, string) { got := there(); return len(got) == 0, fmt.Sprint(len(got)) })
}
