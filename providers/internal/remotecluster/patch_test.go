// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"encoding/json"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// mutated returns a pod at home, and the remote pod after a webhook of the remote cluster. The webhook has
// inserted a container at the front and replaced all images.
func mutated(t *testing.T) (home, there *corev1.Pod) {
	t.Helper()
	home = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", UID: "home"}, Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "first", Image: "first:1"}}, Containers: []corev1.Container{{Name: "main", Image: "main:1"}, {Name: "side", Image: "side:1"}}}}
	there = translated(t, home)
	there.UID, there.Namespace = "remote", "r"
	for _, list := range [][]corev1.Container{there.Spec.InitContainers, there.Spec.Containers} {
		for i := range list {
			list[i].Image = "mirror/" + list[i].Image
		}
	}
	there.Spec.Containers = append([]corev1.Container{{Name: "proxy", Image: "proxy:1"}}, there.Spec.Containers...)
	return home, there
}

// imagesIn returns the images that a patch changes, by container.
func imagesIn(t *testing.T, patch []byte) map[string]string {
	t.Helper()
	if patch == nil {
		return nil
	}
	var changed corev1.Pod
	if err := json.Unmarshal(patch, &changed); err != nil {
		t.Fatal(err)
	}
	return imagesOf(&changed)
}

// TestImagesOfAWebhookStay checks that the replaced images of a webhook in the remote cluster stay: home has not
// changed, so no container is restarted.
func TestImagesOfAWebhookStay(t *testing.T) {
	home, there := mutated(t)
	if patch, err := patchOf(there, translated(t, home)); patch != nil || err != nil {
		t.Errorf("nothing changed at home, and the patch is %s (%v)", patch, err)
	}
	home.Spec.Containers[1].Image, home.Spec.InitContainers[0].Image = "side:2", "first:2"
	patch, err := patchOf(there, translated(t, home))
	if got := imagesIn(t, patch); err != nil || len(got) != 2 || got["side"] != "side:2" || got["first"] != "first:2" {
		t.Errorf("two images changed at home, and the patch has %v (%v)", got, err)
	}
	there.Annotations[annotationSent] = `{"labels":["a"]}` // the pod was created before images were recorded
	patch, err = patchOf(there, translated(t, home))
	if got := imagesIn(t, patch); err != nil || len(got) != 3 || got["main"] != "main:1" {
		t.Errorf("of a pod that does not say what was sent the patch has %v (%v), want what differs", got, err)
	}
}

// TestImagesOfARemadePod changes an image of an object and of its pod, which a webhook has changed. The remote
// cluster refuses the change of the pod at first.
func TestImagesOfARemadePod(t *testing.T) {
	c, pods, objects := startOwners(t)
	c.owners.kind.Remakes = true
	home, there := mutated(t)
	owner := translated(t, home)
	owner.Namespace = "r"
	if _, err := c.writer.create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.CoreV1().Pods("r").Create(t.Context(), there, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both are seen", func() bool {
		return c.cache.findPod("r", there.Name) != nil && c.cache.findOwner("r", there.Name) != nil
	})
	refuse := false
	patched := 0
	pods.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		if patched++; refuse {
			return true, nil, errors.New("not today")
		}
		return false, nil, nil
	})
	objects.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) { patched++; return false, nil, nil })
	change := func() error { return c.owners.changeOwner(t.Context(), there, translated(t, home)) }
	if err := change(); err != nil || patched > 0 {
		t.Errorf("nothing changed at home, and there were %d patches (%v)", patched, err)
	}
	home.Spec.Containers[0].Image, refuse = "main:2", true
	if err := change(); err == nil {
		t.Error("the refusal was not told")
	}
	eventually(t, "the object has the image", func() bool { return imagesOf(c.cache.findOwner("r", there.Name))["main"] == "main:2" })
	refuse = false
	if err := change(); err != nil {
		t.Error(err)
	}
	eventually(t, "the pod has the image", func() bool { return imagesOf(c.cache.findPod("r", there.Name))["main"] == "main:2" })
	if got := imagesOf(c.cache.findPod("r", there.Name)); got["side"] != "mirror/side:1" || got["proxy"] != "proxy:1" {
		t.Errorf("the pod has the images %v, want one of home and the others as they were", got)
	}
	eventually(t, "it is noted", func() bool { return sentOf(c.cache.findOwner("r", there.Name)).Images["main"] == "main:2" })
	if patched = 0; change() != nil || patched > 0 {
		t.Errorf("nothing changed since, and there were %d patches", patched)
	}
}
