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
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// authority provides trust bundles and certificates.
type authority struct {
	bundle string // "" is no bundle
	issue  string // "" issues nothing
	had    []byte // the last content of the volume
}

func (a *authority) TrustBundle(context.Context, *corev1.Pod, *corev1.ClusterTrustBundleProjection) ([]byte, error) {
	if a.bundle == "" {
		return nil, errors.New("combination of signerName and labelSelector matched zero ClusterTrustBundles")
	}
	return []byte(a.bundle), nil
}

func (a *authority) Certificate(_ context.Context, _ *corev1.Pod, _ *corev1.PodCertificateProjection, had []byte) (node.PodCertificate, error) {
	a.had = had
	if a.issue == "" {
		return node.PodCertificate{}, errors.New("credential bundle is not issued yet")
	}
	return node.PodCertificate{Key: []byte("key " + a.issue + "\n"), Chain: []byte("chain " + a.issue)}, nil
}

func certificatesVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o644),
		Sources: []corev1.VolumeProjection{
			{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{SignerName: ptr.To("s.example/x"), Path: "trust/ca.pem"}},
			{PodCertificate: &corev1.PodCertificateProjection{CredentialBundlePath: "mine/both.pem", KeyPath: "key.pem", CertificateChainPath: "chain.pem"}},
		},
	}}}
}

func TestCertificatesFollowTheCluster(t *testing.T) {
	w := newWorld(t)
	a := &authority{}
	w.UseBundles(a)
	w.UseCertificates(a)
	pod := podOf("u", certificatesVolume("c"))
	if err := w.Check(pod); err != nil {
		t.Fatal(err)
	}
	want := `MountVolume.SetUp failed for volume "c" : [combination of signerName and labelSelector matched zero ClusterTrustBundles, credential bundle is not issued yet]`
	if _, err := w.Setup(t.Context(), pod); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	a.bundle, a.issue = "ca 1", "1"
	w.setup(pod)
	dir := w.dir(pod, "c")
	has := func() string {
		return strings.Join([]string{w.read(dir, "trust/ca.pem"), w.read(dir, "mine/both.pem"), w.read(dir, "key.pem"), w.read(dir, "chain.pem")}, "; ")
	}
	if got, want := has(), "ca 1; key 1\nchain 1; key 1\n; chain 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	a.bundle, a.issue = "ca 2", "2"
	if _, err := w.Refresh(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if got, want := has(), "ca 2; key 2\nchain 2; key 2\n; chain 2"; got != want {
		t.Errorf("after a change: got %q, want %q", got, want)
	}
	// A bundle that no longer exists is an error, and its files stay.
	a.bundle = ""
	if _, err := w.Refresh(t.Context(), pod); err == nil || !strings.Contains(has(), "ca 2") {
		t.Errorf("of a bundle that is gone: %v, files %q", err, has())
	}
}

// TestSecurityD3KeysOfCertificatesAreInMemory: if the machine has a file system in memory, no key is ever on a
// disk.
func TestSecurityD3KeysOfCertificatesAreInMemory(t *testing.T) {
	w := newWorld(t)
	a := &authority{bundle: "ca", issue: "canary"}
	w.UseBundles(a)
	w.UseCertificates(a)
	if w.memory == "" {
		t.Skip("this machine has no file system in memory")
	}
	pod := podOf("u", certificatesVolume("c"))
	w.setup(pod)
	if dir := w.dir(pod, "c"); !inMemory(dir) || !strings.Contains(w.read(dir, "key.pem"), "canary") {
		t.Errorf("the key is in %s, want it in memory", dir)
	}
	err := filepath.WalkDir(w.root, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && strings.Contains(w.read(path), "canary") {
			t.Errorf("%s has the key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestARestartOffersTheKeyThatTheVolumeHas(t *testing.T) {
	w := newWorld(t)
	a := &authority{bundle: "ca", issue: "1"}
	w.UseBundles(a)
	w.UseCertificates(a)
	pod := podOf("u", certificatesVolume("c"))
	w.setup(pod)
	if a.had != nil {
		t.Errorf("a new volume had %q", a.had)
	}
	next, err := New(w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	next.UseBundles(a)
	next.UseCertificates(a)
	if _, err := next.Setup(t.Context(), pod); err != nil || string(a.had) != "key 1\nchain 1" {
		t.Errorf("%v; after the restart the volume had %q", err, a.had)
	}
}

// TestAKeyIsReadInsideTheVolumeOnly: the pod chooses the path of a key, so the path is resolved inside the
// volume only.
func TestAKeyIsReadInsideTheVolumeOnly(t *testing.T) {
	w := newWorld(t)
	a := &authority{bundle: "ca", issue: "1"}
	w.UseBundles(a)
	w.UseCertificates(a)
	pod := podOf("u", certificatesVolume("c"))
	w.setup(pod)
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", 40)
	for _, path := range []string{outside, up + outside, "mine/" + up + outside} {
		if got := w.currentFile(pod, &pod.Spec.Volumes[0], path); got != nil {
			t.Errorf("%s: got %q", path, got)
		}
	}
}
