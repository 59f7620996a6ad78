// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

const private = "registry.example/team/app:1"

// tenants are the pods of one node. The name of a pull Secret is its password.
type tenants struct {
	*Puller
	t       *testing.T
	runtime *fakecri.Runtime
	dir     string
}

func newTenants(t *testing.T) *tenants {
	t.Helper()
	w := &tenants{t: t, runtime: fakecri.New(fakecri.Config{}), dir: filepath.Join(t.TempDir(), "images")}
	w.runtime.Publish(fakecri.Image{Name: private, Username: "u", Password: "good"})
	w.restart()
	return w
}

// restart replaces the Puller, as a new process does.
func (w *tenants) restart() {
	w.t.Helper()
	p, err := New(Config{
		Images: w.runtime.Client(), Dir: w.dir, Event: func(*corev1.Pod, string, string, string, string) {},
		Credentials: func(_ context.Context, pod *corev1.Pod) ([]node.RegistryCredential, error) {
			return []node.RegistryCredential{{Registry: "registry.example", Username: "u", Password: pod.Spec.ImagePullSecrets[0].Name}}, nil
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.Puller = p
}

// ensure requests the image for a pod with the password, or for a pod without credentials if password is "". It also reports whether the runtime
// pulled.
func (w *tenants) ensure(image, password string, policy corev1.PullPolicy) (reason string, asked bool) {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID("uid-" + password + string(policy) + image)}}
	if password != "" {
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: password}}
	}
	before := len(w.runtime.Calls("PullImage"))
	_, err := w.Ensure(w.t.Context(), Request{Pod: pod, Container: "c", Image: image, Policy: policy})
	if err != nil {
		reason = err.Reason
	}
	w.Forget(pod.UID)
	return reason, len(w.runtime.Calls("PullImage")) > before
}

func (w *tenants) want(image, password string, policy corev1.PullPolicy, reason string, asked bool) {
	w.t.Helper()
	if gotReason, gotAsked := w.ensure(image, password, policy); gotReason != reason || gotAsked != asked {
		w.t.Errorf("%s for a pod with the password %q, %s: got %q, and the registry was asked: %t; want %q and %t",
			image, password, policy, gotReason, gotAsked, reason, asked)
	}
}

// TestSecurityI6APrivateImageIsNotForEverybody: a pod needs credentials of its own for a private image, even if
// another pod has already pulled it.
func TestSecurityI6APrivateImageIsNotForEverybody(t *testing.T) {
	w := newTenants(t)
	w.want(private, "good", corev1.PullIfNotPresent, "", true)
	for range 2 {
		w.want(private, "", corev1.PullIfNotPresent, ErrPull, true)
		w.want(private, "bad", corev1.PullIfNotPresent, ErrPull, true)
		w.want(private, "", corev1.PullNever, ErrNeverPull, false)
		w.want(private, "bad", corev1.PullNever, ErrNeverPull, false)
		w.want(private, "good", corev1.PullIfNotPresent, "", false)
		w.want(private, "good", corev1.PullNever, "", false)
		w.restart()
	}
	// The ID of the image is not a name of a repository.
	list, err := w.runtime.Client().ListImages(t.Context(), nil)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	w.want(list[0].GetId(), "", corev1.PullNever, ErrNeverPull, false)
}

// TestSecurityI6WhatThereIsForAllIsForAll: every pod may use an image that an administrator preloaded, or that
// was pulled without credentials.
func TestSecurityI6WhatThereIsForAllIsForAll(t *testing.T) {
	w := newTenants(t)
	w.runtime.AddImage(fakecri.Image{Name: "preloaded.example/app:1", Username: "u", Password: "good"})
	w.want("preloaded.example/app:1", "", corev1.PullIfNotPresent, "", false)
	w.want("public.example/app:1", "", corev1.PullIfNotPresent, "", true)
	w.restart()
	w.want("public.example/app:1", "", corev1.PullNever, "", false)
	w.want("public.example/app:1", "bad", corev1.PullIfNotPresent, "", false)
	// A new password opens the image, in addition to the old one.
	w.want(private, "good", corev1.PullIfNotPresent, "", true)
	w.runtime.Publish(fakecri.Image{Name: private, Username: "u", Password: "new"})
	w.want(private, "new", corev1.PullIfNotPresent, "", true)
	w.want(private, "new", corev1.PullIfNotPresent, "", false)
}

// TestSecurityI6BrokenRecordsOpenNothing: an unreadable record opens no image, and neither does a pull whose
// process ended before it could record the pull.
func TestSecurityI6BrokenRecordsOpenNothing(t *testing.T) {
	w := newTenants(t)
	w.want(private, "good", corev1.PullIfNotPresent, "", true)
	files, err := filepath.Glob(filepath.Join(w.dir, "*"+suffix))
	if err != nil || len(files) != 1 {
		t.Fatalf("records: got %v, %v, want one", files, err)
	}
	for _, content := range []string{"", "{", "null", "{}", `{"id":"other","uses":{"registry.example/team/app":{"anybody":true}}}`} {
		if err := os.WriteFile(files[0], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		w.restart()
		w.want(private, "", corev1.PullNever, ErrNeverPull, false)
	}
	w.want(private, "good", corev1.PullIfNotPresent, "", true)
	w.want(private, "good", corev1.PullIfNotPresent, "", false)

	// The process ends between the pull and the record.
	if _, err := w.pulls.beginPull(private); err != nil { // its end is never called
		t.Fatal(err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.want(private, "", corev1.PullNever, ErrNeverPull, false)
	// A pull with a wrong password does not open the image either.
	w.want(private, "bad", corev1.PullIfNotPresent, ErrPull, true)
	w.want(private, "", corev1.PullNever, ErrNeverPull, false)
	w.want(private, "good", corev1.PullIfNotPresent, "", true)
	w.want(private, "good", corev1.PullNever, "", false)
}

// TestSecurityI6AnAnswerThatIsLostOpensNothing: the image exists, but the answer to its pull was lost. Only a
// pod with the right credentials may use it.
func TestSecurityI6AnAnswerThatIsLostOpensNothing(t *testing.T) {
	for name, policy := range map[string]corev1.PullPolicy{"if not present": corev1.PullIfNotPresent, "always": corev1.PullAlways} {
		t.Run(name, func(t *testing.T) {
			w := newTenants(t)
			w.runtime.Lose("PullImage", 1, status.Error(codes.DeadlineExceeded, "no answer"))
			w.want(private, "good", policy, ErrPull, true)
			if list, err := w.runtime.Client().ListImages(t.Context(), nil); err != nil || len(list) != 1 {
				t.Fatalf("images: got %v, %v, want the one that was pulled", list, err)
			}
			for range 2 {
				w.want(private, "", corev1.PullNever, ErrNeverPull, false)
				w.want(private, "bad", corev1.PullIfNotPresent, ErrPull, true)
				w.restart()
			}
			w.want(private, "good", corev1.PullIfNotPresent, "", true)
			w.want(private, "good", corev1.PullNever, "", false)
		})
	}
	// An image that existed before the pull stays open to all pods.
	w := newTenants(t)
	w.runtime.AddImage(fakecri.Image{Name: private, Username: "u", Password: "good"})
	w.runtime.Lose("PullImage", 1, status.Error(codes.DeadlineExceeded, "no answer"))
	w.want(private, "good", corev1.PullAlways, ErrPull, true)
	w.want(private, "", corev1.PullNever, "", false)
}

// TestSecurityI6AnImageWithoutAnAnswerOpensNothing: the image was pulled, but the runtime does not answer
// ImageStatus. No pod without credentials may use it.
func TestSecurityI6AnImageWithoutAnAnswerOpensNothing(t *testing.T) {
	w := newTenants(t)
	w.runtime.Fail("ImageStatus", -1, status.Error(codes.Unavailable, "no answer"))
	w.want(private, "good", corev1.PullAlways, ErrInspect, true)
	w.runtime.Fail("ImageStatus", 0, nil)
	w.want(private, "", corev1.PullNever, ErrNeverPull, false)
}

// TestSecurityI6NoCredentialIsOnDisk: the files contain no credential. They contain a digest with a key of the
// node, so that a digest cannot be compared with another node's.
func TestSecurityI6NoCredentialIsOnDisk(t *testing.T) {
	w := newTenants(t)
	w.want(private, "good", corev1.PullIfNotPresent, "", true)
	entries, err := os.ReadDir(w.dir)
	if err != nil || len(entries) != 2 {
		t.Fatalf("files: got %v, %v, want a key and a record", entries, err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(w.dir, e.Name()))
		if err != nil || strings.Contains(string(data), "good") {
			t.Errorf("%s: got %q, %v", e.Name(), data, err)
		}
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v, %v, want that only its owner reads it", e.Name(), info.Mode(), err)
		}
	}
	other, err := openPulls(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	auth := &runtimeapi.AuthConfig{Username: "u", Password: "good"}
	if other.credentialDigest(auth) == w.pulls.credentialDigest(auth) {
		t.Error("two nodes have the same digest of a credential")
	}
}

// TestPasswordsThatChangeDoNotAddUp: registries issue tokens for a few hours, so only the newest credentials are kept.
func TestPasswordsThatChangeDoNotAddUp(t *testing.T) {
	w := newTenants(t)
	for n := range 3 * maxCredentials {
		w.runtime.Publish(fakecri.Image{Name: private, Username: "u", Password: fmt.Sprint("token-", n)})
		w.want(private, fmt.Sprint("token-", n), corev1.PullAlways, "", true)
	}
	w.want(private, fmt.Sprint("token-", 3*maxCredentials-1), corev1.PullNever, "", false)
	w.want(private, "token-0", corev1.PullNever, ErrNeverPull, false)
	for _, one := range w.pulls.all {
		if n := len(one.Uses["registry.example/team/app"].Credentials); n != maxCredentials {
			t.Errorf("%d credentials are remembered, want the newest %d", n, maxCredentials)
		}
	}
}

func TestImagesThatAreGoneAreForgotten(t *testing.T) {
	w := newTenants(t)
	w.want(private, "good", corev1.PullIfNotPresent, "", true)
	w.want("public.example/app:1", "", corev1.PullIfNotPresent, "", true)
	if err := w.runtime.Client().RemoveImage(t.Context(), &runtimeapi.ImageSpec{Image: private}); err != nil {
		t.Fatal(err)
	}
	if err := w.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.restart()
	if known, _ := w.pulls.knownFiles(); len(known) != 1 {
		t.Errorf("%d images are remembered, want one", len(known))
	}
}

// TestSecurityI6AnImageThatComesBackIsNotForgotten: an image is missing in a list and is pulled again after this
// list. Its record stays.
func TestSecurityI6AnImageThatComesBackIsNotForgotten(t *testing.T) {
	w := newTenants(t)
	w.want(private, "good", corev1.PullIfNotPresent, "", true)
	gone, changes := w.pulls.knownFiles()
	w.want(private, "good", corev1.PullAlways, "", true)
	if err := w.pulls.forgetFiles(gone, changes); err != nil {
		t.Fatal(err)
	}
	w.want(private, "", corev1.PullNever, ErrNeverPull, false)
}
