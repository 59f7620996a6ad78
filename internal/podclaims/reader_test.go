// SPDX-License-Identifier: Apache-2.0

package podclaims

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// cluster is a cluster with one claim, one volume and one node.
type cluster struct {
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
	node   *corev1.Node
	asked  []string
}

func (c *cluster) reader() Reader {
	return Reader{
		Claim: func(_ context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
			c.asked = append(c.asked, "claim "+namespace+"/"+name)
			if c.claim == nil || c.claim.Name != name {
				return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), name)
			}
			return c.claim, nil
		},
		Volume: func(_ context.Context, name string) (*corev1.PersistentVolume, error) {
			c.asked = append(c.asked, "volume "+name)
			if c.volume == nil || c.volume.Name != name {
				return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumes"), name)
			}
			return c.volume, nil
		},
		Node: func(context.Context) (*corev1.Node, error) {
			if c.node == nil {
				return nil, errors.New("no answer")
			}
			return c.node, nil
		},
	}
}

// bound returns a cluster in which the claim is bound and valid.
func bound() *cluster {
	term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}}}
	return &cluster{
		claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "claim-uid"},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}},
		volume: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
			ClaimRef:     &corev1.ObjectReference{UID: "claim-uid"},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}},
		}},
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelHostname: "n"}}},
	}
}

func pod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "pod-uid"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
		{Name: "own", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		{Name: "empty"},
	}}}
}

func TestOnlyWhatIsBoundAndHereIsFound(t *testing.T) {
	for name, tt := range map[string]struct {
		volume string
		change func(*cluster)
		err    string // "" finds it
	}{
		"all is well":     {volume: "v"},
		"on any node":     {volume: "v", change: func(c *cluster) { c.volume.Spec.NodeAffinity = nil }},
		"no claim":        {volume: "v", change: func(c *cluster) { c.claim = nil }, err: `error processing PVC ns/data: failed to fetch PVC from API server: persistentvolumeclaims "data" not found`},
		"claim not bound": {volume: "v", change: func(c *cluster) { c.claim.Status.Phase = corev1.ClaimPending }, err: "error processing PVC ns/data: PVC is not bound"},
		"claim without a volume": {volume: "v", change: func(c *cluster) { c.claim.Spec.VolumeName = "" },
			err: "error processing PVC ns/data: PVC is not bound"},
		"claim that goes": {volume: "v", change: func(c *cluster) { c.claim.DeletionTimestamp = &metav1.Time{} }, err: "error processing PVC ns/data: PVC is being deleted"},
		"no volume":       {volume: "v", change: func(c *cluster) { c.volume = nil }, err: `error processing PVC ns/data: failed to fetch PV pv from API server: persistentvolumes "pv" not found`},
		"a volume that nobody claims": {volume: "v", change: func(c *cluster) { c.volume.Spec.ClaimRef = nil },
			err: "error processing PVC ns/data: found PV object pv but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"},
		"a volume of another claim": {volume: "v", change: func(c *cluster) { c.volume.Spec.ClaimRef.UID = "other" },
			err: "error processing PVC ns/data: found PV object pv but its pv.Spec.ClaimRef.UID other does not point to claim.UID claim-uid"},
		"a volume of another node": {volume: "v", change: func(c *cluster) { c.node.Labels[corev1.LabelHostname] = "m" },
			err: `MountVolume.NodeAffinity check failed for volume "pv" : no matching NodeSelectorTerms`},
		"nobody knows the node": {volume: "v", change: func(c *cluster) { c.node = nil },
			err: `MountVolume.NodeAffinity check failed for volume "pv" : read the node: no answer`},
		"made for the pod": {volume: "own", change: func(c *cluster) {
			c.claim.Name, c.claim.OwnerReferences = "web-own", []metav1.OwnerReference{{UID: "pod-uid", Controller: ptr.To(true)}}
		}},
		"made for another pod of that name": {volume: "own", change: func(c *cluster) {
			c.claim.Name, c.claim.OwnerReferences = "web-own", []metav1.OwnerReference{{UID: "older", Controller: ptr.To(true)}}
		}, err: "error processing PVC ns/web-own: PVC ns/web-own was not created for pod ns/web (pod is not owner)"},
	} {
		t.Run(name, func(t *testing.T) {
			c := bound()
			if tt.change != nil {
				tt.change(c)
			}
			got, err := c.reader().Find(t.Context(), pod(), tt.volume)
			if tt.err == "" && (err != nil || got != c.volume) || tt.err != "" && (err == nil || err.Error() != tt.err) {
				t.Errorf("got %v, %v\nwant %s", got, err, tt.err)
			}
		})
	}
}

func TestOnlyWhatThePodClaimsIsRead(t *testing.T) {
	c := bound()
	for _, volume := range []string{"empty", "none", "data", ""} {
		if _, err := c.reader().Find(t.Context(), pod(), volume); !errdefs.IsInvalidInput(err) {
			t.Errorf("%q: %v", volume, err)
		}
	}
	if len(c.asked) > 0 {
		t.Errorf("asked for %q", c.asked)
	}
}
