// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func TestEmptyDirIsMadeOnce(t *testing.T) {
	w := newWorld(t)
	pod := podOf("u", emptyDir("e", "", ""), corev1.Volume{Name: "none"})
	w.setup(pod)
	dir := w.dir(pod, "e")
	if got := w.mode(dir).Perm(); got != 0o777 {
		t.Errorf("mode %o", got)
	}
	if !w.mode(w.dir(pod, "none")).IsDir() {
		t.Error("a volume without a source is an emptyDir")
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // a container may
		t.Fatal(err)
	}
	w.setup(pod)
	if got := w.read(dir, "file"); got != "x" || w.mode(dir).Perm() != 0o711 {
		t.Errorf("after the second: %q, mode %o", got, w.mode(dir))
	}
}

// TestACrashWhileAnEmptyDirIsMade: a crash can leave a directory without its mode and group. The next setup
// corrects them.
func TestACrashWhileAnEmptyDirIsMade(t *testing.T) {
	w := newWorld(t)
	pod := podOf("u", emptyDir("e", "", ""))
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To(int64(os.Getegid()))}
	if err := os.MkdirAll(w.dir(pod, "e"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.setup(pod)
	if got := w.mode(w.dir(pod, "e")); got != os.ModeDir|os.ModeSetgid|0o777 {
		t.Errorf("mode %v", got)
	}
}

func TestFSGroupOwnsVolumes(t *testing.T) {
	w := newWorld(t)
	group := int64(os.Getegid())
	if os.Geteuid() == 0 {
		group = 4242
	}
	w.secrets["s"] = &corev1.Secret{Data: map[string][]byte{"k": []byte("v")}}
	pod := podOf("u", emptyDir("e", "", ""), secretVolume("s", "s", corev1.KeyToPath{Key: "k", Path: "d/k", Mode: ptr.To[int32](0o400)}))
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: &group}
	w.setup(pod)
	for path, want := range map[string]os.FileMode{
		w.dir(pod, "e"):                       os.ModeDir | os.ModeSetgid | 0o777,
		w.dir(pod, "s"):                       os.ModeDir | os.ModeSetgid | 0o777,
		filepath.Join(w.dir(pod, "s"), "d"):   os.ModeDir | os.ModeSetgid | 0o755,
		filepath.Join(w.dir(pod, "s"), "d/k"): 0o440,
	} {
		if path == filepath.Join(w.dir(pod, "s"), "d") {
			want |= w.mode(path).Perm() & 0o022 // depends on the umask of this process
		}
		if got := w.mode(path); got != want || groupOf(t, path) != group {
			t.Errorf("%s: %v of group %d, want %v of %d", path, got, groupOf(t, path), want, group)
		}
	}
}

func TestMemoryIsOfItsSize(t *testing.T) {
	w := mounting(t)
	pod := podOf("u", emptyDir("small", corev1.StorageMediumMemory, "64Ki"), emptyDir("node", corev1.StorageMediumMemory, ""))
	w.setup(pod)
	w.setup(pod)
	small := w.dir(pod, "small")
	if err := os.WriteFile(filepath.Join(small, "f"), make([]byte, 1<<20), 0o600); err == nil {
		t.Error("1 MiB fits in a volume of 64 KiB")
	}
	if !isMemoryMount(small) || w.mode(small).Perm() != 0o777 {
		t.Errorf("%s is not open for all in memory: %v", small, w.mode(small))
	}
	if got := sizeOf(t, w.dir(pod, "node")); got != 64<<20 {
		t.Errorf("a volume without a limit has %d bytes, want what the node has", got)
	}
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}
	if got := w.memorySize(pod, 2<<20); got != 1<<20 {
		t.Errorf("size %d, want what the pod can use", got)
	}
}

// TestSecurityD3SecretsAreInMemory: after a restart of the machine the mount in memory is gone. Refresh mounts
// it again, and writes nothing to the disk below.
func TestSecurityD3SecretsAreInMemory(t *testing.T) {
	w := mounting(t)
	w.secrets["s"] = &corev1.Secret{Data: map[string][]byte{"k": []byte("v")}}
	pod := podOf("u", secretVolume("s", "s"))
	w.setup(pod)
	dir := w.dir(pod, "s")
	if !isMemoryMount(dir) {
		t.Fatalf("%s is on a disk", dir)
	}
	if err := detachBelow(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Refresh(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if !isMemoryMount(dir) || w.read(dir, "k") != "v" {
		t.Errorf("%s is on a disk after a start of the machine", dir)
	}
}

func TestSecurityD3SecretsAreInMemoryWithoutMounts(t *testing.T) {
	if !inMemory("/dev/shm") {
		t.Skip("this needs /dev/shm")
	}
	t.Setenv("XDG_RUNTIME_DIR", "")
	w := newWorld(t)
	w.secrets["s"] = &corev1.Secret{Data: map[string][]byte{"k": []byte("v")}}
	pod := podOf("u", secretVolume("s", "s"), emptyDir("m", corev1.StorageMediumMemory, ""))
	w.setup(pod)
	for _, name := range []string{"s", "m"} {
		if dir := w.dir(pod, name); !inMemory(dir) || !strings.HasPrefix(dir, "/dev/shm/virtual-kubelet-") {
			t.Errorf("%s is on a disk", dir)
		}
	}
	if got := w.mode(w.memory).Perm(); got != 0o700 || !strings.Contains(w.Medium(), w.memory) {
		t.Errorf("mode %o; %s", got, w.Medium())
	}
}

// TestADirectoryOfSomebodyElseIsNotUsed: /dev/shm is writable for all users of a machine, so a directory of
// another user, or a link, is not used.
func TestADirectoryOfSomebodyElseIsNotUsed(t *testing.T) {
	parent := t.TempDir()
	link, open := filepath.Join(parent, "link"), filepath.Join(parent, "open")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{link, open} {
		if err := ownDirectory(dir); err == nil {
			t.Errorf("%s was taken", dir)
		}
	}
	if err := ownDirectory(filepath.Join(parent, "new")); err != nil {
		t.Error(err)
	}
	if _, err := New(Config{Root: t.TempDir(), NoMounts: true, Memory: "/proc"}); err == nil {
		t.Error("a directory that is not in memory was taken")
	}
}

func TestUsageAndEviction(t *testing.T) {
	w := newWorld(t)
	pod := podOf("u", emptyDir("e", "", "100Ki"), emptyDir("free", "", ""))
	w.setup(pod)
	write := func(name string, size int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(w.root, "pods/u", name), []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("volumes/e/a", 64<<10)
	write("volumes/free/a", 200<<10)
	if err := os.Link(filepath.Join(w.dir(pod, "e"), "a"), filepath.Join(w.dir(pod, "e"), "again")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", filepath.Join(w.dir(pod, "e"), "machine")); err != nil {
		t.Fatal(err)
	}
	exceeded := func() (string, error) {
		t.Helper()
		use, err := w.Usage(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		return w.Exceeded(pod, use)
	}
	if text, err := exceeded(); text != "" || err != nil {
		t.Errorf("64 KiB with two names: %q, %v", text, err)
	}
	use, err := w.Usage(t.Context(), pod)
	if e := use["e"]; err != nil || e.Bytes < 64<<10 || e.Bytes > 90<<10 || e.Inodes != 3 || e.Memory {
		t.Errorf("usage %+v, %v", use, err)
	}
	write("volumes/e/b", 64<<10)
	if text, err := exceeded(); text != `Usage of EmptyDir volume "e" exceeds the limit "100Ki". ` || err != nil {
		t.Errorf("128 KiB: %q, %v", text, err)
	}
	pod = podOf("u", emptyDir("free", "", ""))
	write("etc-hosts", maxFiles+1)
	if text, err := exceeded(); !strings.Contains(text, "etc-hosts") || err != nil {
		t.Errorf("a hosts file without bound: %q, %v", text, err)
	}
}
