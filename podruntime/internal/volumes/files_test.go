// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

func TestConfigMapHasItsKeysOrItsItems(t *testing.T) {
	w := newWorld(t)
	w.maps["m"] = &corev1.ConfigMap{Data: map[string]string{"a": "1", "b": "2"}, BinaryData: map[string][]byte{"bin": {0, 255}}}
	pod := podOf("u", configMapVolume("all", "m"),
		configMapVolume("some", "m", corev1.KeyToPath{Key: "a", Path: "deep/er/a", Mode: ptr.To[int32](0o400)}, corev1.KeyToPath{Key: "bin", Path: "bin"}))
	pod.Spec.Volumes[1].ConfigMap.DefaultMode = ptr.To[int32](0o640)
	w.setup(pod)
	all, some := w.dir(pod, "all"), w.dir(pod, "some")
	if got := w.read(all, "a") + w.read(all, "b") + w.read(all, "bin"); got != "12\x00\xff" {
		t.Errorf("all keys: %q", got)
	}
	if got := w.mode(all, "a"); got != 0o644 {
		t.Errorf("mode without a default: %o", got)
	}
	if got := w.mode(all); got.Perm() != 0o777 {
		t.Errorf("mode of the volume: %o", got)
	}
	if got := w.read(some, "deep/er/a"); got != "1" {
		t.Errorf("item in a directory: %q", got)
	}
	if a, b := w.mode(some, "deep/er/a"), w.mode(some, "bin"); a != 0o400 || b != 0o640 {
		t.Errorf("modes %o and %o, want 400 and 640", a, b)
	}
	if _, err := os.Lstat(filepath.Join(some, "b")); err == nil {
		t.Error("a key that is no item is there")
	}
}

func TestWhatIsMissingIsSaidAsAKubeletSaysIt(t *testing.T) {
	w := newWorld(t)
	w.maps["m"], w.secrets["s"] = &corev1.ConfigMap{}, &corev1.Secret{}
	key := corev1.KeyToPath{Key: "k", Path: "k"}
	optional := podOf("u", configMapVolume("x", "no"), secretVolume("y", "no"), configMapVolume("z", "m", key))
	optional.Spec.Volumes[0].ConfigMap.Optional = ptr.To(true)
	optional.Spec.Volumes[1].Secret.Optional = ptr.To(true)
	optional.Spec.Volumes[2].ConfigMap.Optional = ptr.To(true)
	w.setup(optional)
	for want, volume := range map[string]corev1.Volume{
		`MountVolume.SetUp failed for volume "x" : configmap "y" not found`:                         configMapVolume("x", "y"),
		`MountVolume.SetUp failed for volume "x" : secret "y" not found`:                            secretVolume("x", "y"),
		`MountVolume.SetUp failed for volume "x" : configmap references non-existent config key: k`: configMapVolume("x", "m", key),
		`MountVolume.SetUp failed for volume "x" : references non-existent secret key: k`:           secretVolume("x", "s", key),
		`MountVolume.SetUp failed for volume "x" : invalid path: must not contain '..': a/../../b`:  badPath("x"),
		`MountVolume.SetUp failed for volume "x" : [configmap "y" not found, secret "z" not found]`: twice("x"),
		`MountVolume.SetUp failed for volume "x" : spec.volumes[0].persistentVolumeClaim: volume "x": no directory of the machine is open to PersistentVolumes; see localVolumes in the provider's configuration`: {Name: "x", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}},
	} {
		_, err := w.Setup(t.Context(), podOf("u2", volume))
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		var all *Error
		if !errors.As(err, &all) || len(all.Volumes) != 1 {
			t.Errorf("%v has no error for each volume", err)
		}
	}
	if _, err := w.Setup(t.Context(), podOf("u2", configMapVolume("x", "y"))); !apierrors.IsNotFound(err) {
		t.Errorf("%v lost its kind", err)
	}
}

func badPath(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "a/../../b"}},
	}}}}
}

func twice(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "y"}}},
		{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "z"}}},
	}}}}
}

func TestWhatCannotBeIsRefusedByField(t *testing.T) {
	w := newWorld(t)
	source := func(s corev1.VolumeSource) corev1.Volume { return corev1.Volume{Name: "x", VolumeSource: s} }
	for field, volume := range map[string]corev1.Volume{
		"spec.volumes[0].csi":             source(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}),
		"spec.volumes[0].gitRepo":         source(corev1.VolumeSource{GitRepo: &corev1.GitRepoVolumeSource{}}),
		"spec.volumes[0].ephemeral":       source(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}),
		"spec.volumes[0].image":           source(corev1.VolumeSource{Image: &corev1.ImageVolumeSource{}}),
		"spec.volumes[0].hostPath.path":   hostPathVolume("x", "/etc", ""),
		"spec.volumes[0].emptyDir.medium": emptyDir("x", "HugePages", ""),
	} {
		err := w.Check(podOf("u", volume))
		if !errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), field+`: volume "x": `) {
			t.Errorf("%s: %v", field, err)
		}
		if _, err := w.Setup(t.Context(), podOf("u", volume)); !errdefs.IsInvalidInput(err) {
			t.Errorf("%s is set up: %v", field, err)
		}
		unused := podOf("u", volume)
		unused.Spec.Containers[0].VolumeMounts = nil
		if err := w.Check(unused); err != nil {
			t.Errorf("%s, which no container names: %v", field, err)
		}
	}
}

func TestProjectedHasAllSources(t *testing.T) {
	w := newWorld(t)
	w.maps["m"] = &corev1.ConfigMap{Data: map[string]string{"ca.crt": "ca"}}
	w.secrets["s"] = &corev1.Secret{Data: map[string][]byte{"pw": []byte("secret")}}
	pod := podOf("u", corev1.Volume{Name: "p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o644),
		Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}}},
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Items: []corev1.KeyToPath{{Key: "pw", Path: "sec/pw"}}}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{fieldItem("namespace", "metadata.namespace")}}},
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		},
	}}})
	w.setup(pod)
	p := w.dir(pod, "p")
	if got := w.read(p, "ca.crt") + w.read(p, "sec/pw") + w.read(p, "namespace") + w.read(p, "token"); got != "casecretnstoken-1" {
		t.Errorf("files: %q", got)
	}
	if got := w.mode(p, "token"); got != 0o644 {
		t.Errorf("token for all users: %o", got)
	}
	// A token is replaced at its time.
	w.token = node.PodToken{Token: "token-2", RefreshAt: time.Now().Add(3 * time.Second)}
	again, err := w.Refresh(t.Context(), pod)
	if err != nil || again > 3*time.Second || again < time.Second {
		t.Errorf("look again after %v, %v: want the time of the token", again, err)
	}
	if got := w.read(p, "token"); got != "token-2" {
		t.Errorf("token after its time: %q", got)
	}
	// If a pod runs as one user, only this user can read the token.
	pod = pod.DeepCopy()
	pod.UID = "u2"
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To(int64(os.Geteuid()))}
	w.setup(pod)
	if got := w.mode(w.dir(pod, "p"), "token"); got != 0o600 {
		t.Errorf("token for one user: %o", got)
	}
}

func TestDownwardAPI(t *testing.T) {
	w := newWorld(t)
	pod := podOf("u", corev1.Volume{Name: "d", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
		fieldItem("name", "metadata.name"), fieldItem("labels", "metadata.labels"), fieldItem("one", "metadata.annotations['x/y']"),
		resourceItem("cpu", "limits.cpu"), resourceItem("memory", "limits.memory"), resourceItem("request", "requests.memory"),
	}}}})
	pod.Spec.Volumes[0].DownwardAPI.Items[3].ResourceFieldRef.Divisor = resource.MustParse("1m")
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}
	pod.Annotations = map[string]string{"x/y": "ann"}
	w.setup(pod)
	d := w.dir(pod, "d")
	for name, want := range map[string]string{
		"name": "web", "labels": `app="web"`, "one": "ann", "cpu": "2000", "memory": "67108864", "request": "33554432",
	} {
		if got := w.read(d, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	pod = pod.DeepCopy()
	pod.Labels["app"], pod.Labels["b"] = "other", "new"
	if _, err := w.Refresh(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if got := w.read(d, "labels"); got != "app=\"other\"\nb=\"new\"" {
		t.Errorf("labels after an update: %q", got)
	}
}

// TestSecurityD3RefreshBringsNothingBack: a Refresh may come late, after the pod's volumes were removed. It does
// not create files again.
func TestSecurityD3RefreshBringsNothingBack(t *testing.T) {
	w := newWorld(t)
	w.secrets["s"] = &corev1.Secret{Data: map[string][]byte{"key": []byte("value")}}
	pod := podOf("u", corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}})
	w.setup(pod)
	if err := w.Remove(pod.UID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Refresh(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if left, err := w.Pods(); err != nil || len(left) > 0 {
		t.Errorf("on the machine there are files of %v, %v", left, err)
	}
}

func TestRefreshFollowsTheObjects(t *testing.T) {
	w := newWorld(t)
	w.maps["m"] = &corev1.ConfigMap{Data: map[string]string{"a": "1", "gone": "x"}}
	optional := configMapVolume("o", "later")
	optional.ConfigMap.Optional = ptr.To(true)
	pod := podOf("u", configMapVolume("v", "m"), optional)
	w.setup(pod)
	before, _ := os.Readlink(filepath.Join(w.dir(pod, "v"), currentLink))
	again, err := w.Refresh(t.Context(), pod)
	if after, _ := os.Readlink(filepath.Join(w.dir(pod, "v"), currentLink)); err != nil || after != before || again > time.Minute || again <= 0 {
		t.Errorf("nothing changed: version %s to %s, again %v, %v", before, after, again, err)
	}
	w.maps["m"] = &corev1.ConfigMap{Data: map[string]string{"a": "2", "new": "n"}}
	w.maps["later"] = &corev1.ConfigMap{Data: map[string]string{"k": "v"}}
	if _, err := w.Refresh(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if got := w.read(w.dir(pod, "v"), "a") + w.read(w.dir(pod, "v"), "new") + w.read(w.dir(pod, "o"), "k"); got != "2nv" {
		t.Errorf("after the change: %q", got)
	}
	if _, err := os.Lstat(filepath.Join(w.dir(pod, "v"), "gone")); err == nil {
		t.Error("a key that is gone still has a name")
	}
	// An object that no longer exists is an error, and its files stay.
	delete(w.maps, "m")
	if _, err := w.Refresh(t.Context(), pod); err == nil {
		t.Error("no error for an object that is gone")
	}
	if got := w.read(w.dir(pod, "v"), "a"); got != "2" {
		t.Errorf("files of an object that is gone: %q", got)
	}
	delete(w.maps, "later")
	w.maps["m"] = &corev1.ConfigMap{}
	if _, err := w.Refresh(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(w.dir(pod, "o"), "k")); err == nil {
		t.Error("files of an optional object that is gone stay")
	}
}

func TestVolumesInsideVolumesHaveAPlace(t *testing.T) {
	w := newWorld(t)
	w.maps["m"] = &corev1.ConfigMap{Data: map[string]string{"a": "1"}}
	pod := podOf("u", configMapVolume("outer", "m"), emptyDir("inner", "", ""), emptyDir("deeper", "", ""))
	m := pod.Spec.Containers[0].VolumeMounts
	m[1].MountPath, m[2].MountPath = "/outer/in/side", "/outer/in/side/deeper"
	w.setup(pod)
	if _, err := w.Refresh(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if !w.mode(w.dir(pod, "outer"), "in/side").IsDir() {
		t.Error("the inner volume has no place")
	}
	if _, err := os.Lstat(filepath.Join(w.dir(pod, "outer"), "in/side/deeper")); err == nil {
		t.Error("the deepest has a place in the outer volume, where it is not mounted")
	}
}
