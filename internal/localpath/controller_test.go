// SPDX-License-Identifier: Apache-2.0

package localpath

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

func TestAClaimGetsAVolumeOfTheNode(t *testing.T) {
	inWorld(t, func(w *world) {
		w.claim("data", nil)
		fs := corev1.PersistentVolumeFilesystem
		want := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid-data", Labels: map[string]string{NodeLabel: "n"}, Annotations: map[string]string{annotationBy: Driver}},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("3Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				VolumeMode: &fs, StorageClassName: "local", PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
				ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "ns", Name: "data", UID: "uid-data"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/volumes/pvc-uid-data"}},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"host"}}},
				}}}},
			},
		}
		if diff := cmp.Diff(want, w.volumes()["pvc-uid-data"], cmpopts.IgnoreTypes(metav1.TypeMeta{}, []metav1.ManagedFieldsEntry{})); diff != "" || w.has() != "pvc-uid-data" {
			t.Errorf("directories %q, volume (- wanted, + got)\n%s", w.has(), diff)
		}
		if said := w.said(); said != "Normal ProvisioningSucceeded Successfully provisioned volume pvc-uid-data" {
			t.Errorf("events %q", said)
		}
		// The claim is not bound yet, and the next process sees it again.
		w.stop()
		w.start()
		if said := w.said(); said != "" || len(w.volumes()) != 1 {
			t.Errorf("events %q, volumes %v", said, w.volumes())
		}
	})
}

func TestOnlyClaimsOfThisNodeAndDriverGetAVolume(t *testing.T) {
	inWorld(t, func(w *world) {
		for name, change := range map[string]func(*corev1.PersistentVolumeClaim){
			"another-node":   func(c *corev1.PersistentVolumeClaim) { c.Annotations[annotationNode] = "m" },
			"no-node":        func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, annotationNode) },
			"another-driver": func(c *corev1.PersistentVolumeClaim) { c.Annotations[annotationDriver] = "other.example" },
			"has-one":        func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" },
			"goes": func(c *corev1.PersistentVolumeClaim) {
				c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: time.Now()}, []string{"f"}
			},
		} {
			w.claim(name, change)
		}
		if w.has() != "" || len(w.volumes()) > 0 || w.said() != "" {
			t.Errorf("directories %q, volumes %v", w.has(), w.volumes())
		}
	})
}

func TestWhatCannotBeMadeIsAnEvent(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, class := range []*storagev1.StorageClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Provisioner: "other.example"},
			{ObjectMeta: metav1.ObjectMeta{Name: "options"}, Provisioner: Driver, MountOptions: []string{"noatime"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "parameters"}, Provisioner: Driver, Parameters: map[string]string{"size": "big"}},
		} {
			if _, err := w.api.StorageV1().StorageClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		classed := func(name string) func(*corev1.PersistentVolumeClaim) {
			return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &name }
		}
		for name, tt := range map[string]struct {
			change func(*corev1.PersistentVolumeClaim)
			want   string
		}{
			"block":      {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }, "spec.volumeMode: "},
			"selector":   {func(c *corev1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} }, "spec.selector: "},
			"source":     {func(c *corev1.PersistentVolumeClaim) { c.Spec.DataSource = &corev1.TypedLocalObjectReference{} }, "spec.dataSource: "},
			"many":       {func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes[0] = corev1.ReadWriteMany }, "spec.accessModes: "},
			"classless":  {func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }, "spec.storageClassName: "},
			"other":      {classed("other"), "spec.storageClassName: "},
			"options":    {classed("options"), "mountOptions of StorageClass options: "},
			"parameters": {classed("parameters"), "parameters of StorageClass parameters: "},
		} {
			w.claim(name, tt.change)
			if said := w.said(); !strings.HasPrefix(said, "Warning ProvisioningFailed "+tt.want) || strings.Contains(said, "\n") {
				t.Errorf("%s: events %q, want one about %s", name, said, tt.want)
			}
		}
		if w.has() != "" || len(w.volumes()) > 0 {
			t.Errorf("directories %q, volumes %v", w.has(), w.volumes())
		}
	})
}

func TestWhatFailsIsTriedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.breaks(errBroken)
		w.claim("data", nil)
		if said := w.said(); !strings.Contains(said, "ProvisioningFailed make the directory of volume pvc-uid-data: the disk is broken") {
			t.Errorf("events %q", said)
		}
		w.breaks(nil)
		time.Sleep(lastRetry)
		w.settle()
		if len(w.volumes()) != 1 || w.has() != "pvc-uid-data" {
			t.Fatalf("directories %q, volumes %v", w.has(), w.volumes())
		}
		w.breaks(errBroken)
		w.change("pvc-uid-data", release)
		if said := w.said(); !strings.Contains(said, "VolumeFailedDelete remove the directory of volume pvc-uid-data: the disk is broken") || len(w.volumes()) != 1 {
			t.Errorf("events %q, volumes %v: want the volume as long as its directory is there", said, w.volumes())
		}
		w.breaks(nil)
		time.Sleep(lastRetry)
		w.settle()
		if len(w.volumes()) != 0 || w.has() != "" {
			t.Errorf("directories %q, volumes %v", w.has(), w.volumes())
		}
	})
}

// TestAKillAtAnyStepIsMadeGood: the controller is stopped after each step, and the next controller completes the
// work.
func TestAKillAtAnyStepIsMadeGood(t *testing.T) {
	for step, verb := range map[string]string{"after the directory was made": "create", "after the directory was removed": "delete"} {
		t.Run(step, func(t *testing.T) {
			inWorld(t, func(w *world) {
				dead := true
				w.api.PrependReactor(verb, "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
					return dead, nil, errors.New("killed")
				})
				w.claim("data", nil)
				if verb == "delete" {
					w.forget("data")
					w.change("pvc-uid-data", release)
				}
				w.stop()
				dead = false
				w.start()
				if verb == "create" && (len(w.volumes()) != 1 || w.has() != "pvc-uid-data") || verb == "delete" && (len(w.volumes()) != 0 || w.has() != "") {
					t.Errorf("directories %q, volumes %v", w.has(), w.volumes())
				}
			})
		})
	}
}

func TestOnlyWhatIsReleasedIsRemoved(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"bound":     func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound },
		"available": func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeAvailable },
		"kept": func(v *corev1.PersistentVolume) {
			release(v)
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		},
		"another node's":     func(v *corev1.PersistentVolume) { release(v); v.Labels[NodeLabel] = "m" },
		"another driver's":   func(v *corev1.PersistentVolume) { release(v); v.Annotations[annotationBy] = "other.example" },
		"of another claim":   func(v *corev1.PersistentVolume) { release(v); v.Spec.ClaimRef.UID = "other" },
		"at another place":   func(v *corev1.PersistentVolume) { release(v); v.Spec.Local.Path = "/etc" },
		"of another kind":    func(v *corev1.PersistentVolume) { release(v); v.Spec.Local = nil },
		"released by nobody": func(v *corev1.PersistentVolume) { release(v); v.Spec.ClaimRef = nil },
	} {
		inWorld(t, func(w *world) {
			w.claim("data", nil)
			w.change("pvc-uid-data", change)
			if len(w.volumes()) != 1 || w.has() != "pvc-uid-data" {
				t.Errorf("%s: directories %q, volumes %v", name, w.has(), w.volumes())
			}
		})
	}
}

// TestWhatWasSeenMayBeOld: the controller reads the volume from the API server before it removes anything,
// because its cache may be outdated.
func TestWhatWasSeenMayBeOld(t *testing.T) {
	inWorld(t, func(w *world) {
		w.claim("data", nil)
		now := w.volumes()["pvc-uid-data"]
		release(now)
		now.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		w.api.PrependReactor("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, now, nil
		})
		w.change("pvc-uid-data", release)
		if len(w.volumes()) != 1 || w.has() != "pvc-uid-data" {
			t.Errorf("directories %q, volumes %v", w.has(), w.volumes())
		}
	})
}

// TestAProcessThatStandsByDoesNothing: a standby process changes nothing. When it becomes active, it does the
// work that the former active process left undone.
func TestAProcessThatStandsByDoesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.claim("old", nil)
		w.standsBy.Store(true)
		w.change("pvc-uid-old", release)
		w.claim("new", nil)
		time.Sleep(time.Hour)
		if w.has() != "pvc-uid-old" || len(w.volumes()) != 1 {
			t.Errorf("directories %q, volumes %v", w.has(), w.volumes())
		}
		w.standsBy.Store(false)
		w.settle()
		if w.has() != "pvc-uid-new" || len(w.volumes()) != 1 || w.volumes()["pvc-uid-new"] == nil {
			t.Errorf("once it acts for the node: directories %q, volumes %v", w.has(), w.volumes())
		}
	})
}
