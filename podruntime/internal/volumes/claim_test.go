// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// binder has the PersistentVolume of every volume.
type binder struct {
	volume *corev1.PersistentVolume
	asked  int
}

func (b *binder) PersistentVolume(context.Context, *corev1.Pod, string) (*corev1.PersistentVolume, error) {
	b.asked++
	if b.volume == nil {
		return nil, errors.New("PVC is not bound")
	}
	return b.volume, nil
}

func localVolume(path string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
	}}
}

func claimVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}
}

// newLocal makes Volumes with a directory for local volumes. This directory contains a volume, pv.
func newLocal(t *testing.T, change ...func(*Config)) (w *world, b *binder, dir string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(base, "pv")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w = newWorld(t, append(change, func(c *Config) { c.LocalVolumes = []string{base} })...)
	b = &binder{volume: localVolume(dir)}
	w.UseClaims(b)
	return w, b, dir
}

func (w *world) mountOf(pod *corev1.Pod) (string, bool, error) {
	mounts, err := w.Mounts(w.t.Context(), pod, &pod.Spec.Containers[0])
	if err != nil {
		return "", false, err
	}
	return at(mounts[0]), mounts[0].Readonly, nil
}

func TestAClaimIsItsPersistentVolume(t *testing.T) {
	w, b, dir := newLocal(t)
	pod := podOf("u", claimVolume("v"))
	if err := w.Check(pod); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.mountOf(pod); err == nil || err.Error() != `cannot find volume "v" to mount into container "c"` {
		t.Errorf("before it is set up: %v", err)
	}
	w.setup(pod)
	if got, readOnly, err := w.mountOf(pod); got != dir || readOnly || err != nil {
		t.Errorf("got %s, read-only %v, %v, want %s", got, readOnly, err, dir)
	}
	pod.Spec.Containers[0].VolumeMounts[0].SubPath = "deep/er"
	if got, _, err := w.mountOf(pod); got != filepath.Join(dir, "deep/er") || err != nil {
		t.Errorf("subPath: got %s, %v", got, err)
	}
	pod.Spec.Containers[0].VolumeMounts[0].SubPath = ""
	pod.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true
	if _, readOnly, err := w.mountOf(pod); !readOnly || err != nil {
		t.Errorf("of a claim that is read-only: read-only %v, %v", readOnly, err)
	}
	if use, err := w.Usage(t.Context(), pod); len(use) > 0 || err != nil {
		t.Errorf("the pod pays for %v, %v", use, err)
	}
	if b.asked != 1 {
		t.Errorf("asked %d times, want once", b.asked)
	}
}

// TestAPersistentVolumeOutlivesAnOutageAndThePod: the volume of a claim is read once and recorded. Its data stay when the pod is removed.
func TestAPersistentVolumeOutlivesAnOutageAndThePod(t *testing.T) {
	w, b, dir := newLocal(t)
	pod := podOf("u", claimVolume("v"))
	w.setup(pod)
	if err := os.WriteFile(filepath.Join(dir, "data"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.volume = nil
	next, err := New(w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	next.UseClaims(b)
	if _, err := next.Setup(t.Context(), pod); err != nil {
		t.Errorf("after a restart, in an outage: %v", err)
	}
	if mounts, err := next.Mounts(t.Context(), pod, &pod.Spec.Containers[0]); err != nil || at(mounts[0]) != dir {
		t.Errorf("after a restart, in an outage: %v, %v", mounts, err)
	}
	// An empty record, which a crash can leave, is read again.
	if err := os.WriteFile(filepath.Join(w.pods, "u", claimsDir, "v"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Setup(t.Context(), pod); err == nil || !strings.HasSuffix(err.Error(), "PVC is not bound") {
		t.Errorf("with an empty record: %v", err)
	}
	b.volume = localVolume(dir)
	w.setup(pod)
	if err := w.Remove(pod.UID); err != nil {
		t.Fatal(err)
	}
	if got := w.read(dir, "data"); got != "precious" {
		t.Errorf("after the pod: %q", got)
	}
}

func TestPersistentVolumesThatAreRefused(t *testing.T) {
	w, b, dir := newLocal(t)
	outside := t.TempDir()
	link := filepath.Join(filepath.Dir(dir), "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(filepath.Dir(dir), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hostPath := localVolume("")
	hostPath.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}}
	nfs := localVolume("")
	nfs.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}}
	block, options := localVolume(dir), localVolume(dir)
	block.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
	options.Spec.MountOptions = []string{"noatime"}
	for name, tt := range map[string]struct {
		volume *corev1.PersistentVolume
		want   string
		ever   bool // a retry is useless
	}{
		"not bound":             {nil, "PVC is not bound", false},
		"outside":               {localVolume(outside), "spec.local.path: " + outside + " is not below a directory of the machine", true},
		"up and out":            {localVolume(dir + "/../../x"), "must not contain '..'", true},
		"a link out":            {localVolume(link), "leads out of the directories of the machine", false},
		"not there":             {localVolume(dir + "-2"), `MountVolume.NewMounter initialization failed for volume "pv" : path "` + dir + `-2" does not exist`, false},
		"a file":                {localVolume(file), "cannot be opened as a directory", false},
		"a hostPath":            {hostPath, "spec.hostPath.path: ", true},
		"another kind":          {nfs, "volumes of this kind are not supported by this node", true},
		"a block device":        {block, "spec.volumeMode: only file systems are supported by this node", true},
		"with options to mount": {options, "spec.mountOptions: ", true},
	} {
		b.volume = tt.volume
		pod := podOf("u", claimVolume("v"))
		_, err := w.Setup(t.Context(), pod)
		if err == nil || !strings.Contains(err.Error(), tt.want) || errdefs.IsInvalidInput(err) != tt.ever {
			t.Errorf("%s: got %v\nwant %s, for ever: %v", name, err, tt.want, tt.ever)
		}
		if _, _, err := w.mountOf(pod); err == nil {
			t.Errorf("%s: it is mounted", name)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}

// TestAPersistentVolumeThatBecomesALinkIsNotFollowed: each mount checks its directory again.
func TestAPersistentVolumeThatBecomesALinkIsNotFollowed(t *testing.T) {
	w, _, dir := newLocal(t)
	pod := podOf("u", claimVolume("v"))
	w.setup(pod)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), dir); err != nil {
		t.Fatal(err)
	}
	if got, _, err := w.mountOf(pod); err == nil {
		t.Errorf("%s is mounted", got)
	}
}

func TestAHostPathPersistentVolume(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, b, _ := newLocal(t, func(c *Config) { c.HostPaths = []string{base} })
	b.volume = localVolume("")
	dir := filepath.Join(base, "made")
	b.volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir, Type: ptr.To(corev1.HostPathDirectoryOrCreate)}}
	pod := podOf("u", corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
	w.setup(pod)
	if got, _, err := w.mountOf(pod); got != dir || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, dir)
	}
}

func TestALocalVolumeIsTheGroups(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to other groups")
	}
	group, never := int64(4242), corev1.FSGroupChangeOnRootMismatch
	for name, tt := range map[string]struct {
		policy   *corev1.PodFSGroupChangePolicy
		readOnly bool
		before   int64 // the group of the directory, which can write to it
		want     int64 // the group of the file in it
	}{
		"always":                  {before: group, want: group},
		"read-only":               {readOnly: true},
		"the root is the group's": {policy: &never, before: group},
		"the root is another's":   {policy: &never, want: group},
	} {
		w, _, dir := newLocal(t)
		file := filepath.Join(dir, "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chown(dir, 0, int(tt.before)), os.Chmod(dir, os.ModeSetgid|0o770)); err != nil {
			t.Fatal(err)
		}
		pod := podOf("u", claimVolume("v"))
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: &group, FSGroupChangePolicy: tt.policy}
		pod.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = tt.readOnly
		w.setup(pod)
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := gidOf(info); got != tt.want {
			t.Errorf("%s: the file is of group %d, want %d", name, got, tt.want)
		}
	}
}
