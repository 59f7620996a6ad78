// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	vkslog "github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/eci"
)

const canary = "canary-8d1f"

// written is a text that several goroutines may append to.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (w *written) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(data)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// secretive gives containers a variable from a Secret, as the node does.
type secretive struct{ node.PodObjects }

// Container implements node.PodObjects.
func (s secretive) Container(_ context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	for i := range pod.Spec.Containers {
		if c := pod.Spec.Containers[i].DeepCopy(); c.Name == name {
			c.Env = []corev1.EnvVar{{Name: "PASSWORD", Value: canary + "-variable"}}
			return c, nil
		}
	}
	return nil, nil
}

// Secret implements node.PodObjects.
func (s secretive) Secret(context.Context, *corev1.Pod, string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: map[string][]byte{"key": []byte(canary + "-file")}}, nil
}

// PullCredentials implements node.PullCredentials.
func (s secretive) PullCredentials(context.Context, *corev1.Pod) ([]node.RegistryCredential, error) {
	return []node.RegistryCredential{{Registry: "registry.example.com", Username: "user", Password: canary + "-registry"}}, nil
}

// TestCanary looks for secrets everywhere except in the fields for secrets.
func TestCanary(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p := h.open()
	var said, reports written
	ctx, cancel := context.WithCancel(log.WithLogger(context.WithoutCancel(t.Context()), vkslog.FromSlog(slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug})))))
	p.UsePodObjects(secretive{h})
	p.UsePodTokens(h)
	p.UsePullCredentials(secretive{h})
	p.NotifyPods(ctx, func(pod *corev1.Pod) { _, _ = reports.Write([]byte(pod.Status.String())) })
	ended := make(chan error)
	go func() { ended <- p.RunInBackground(ctx) }()

	pod := h.Pod("default", "web", stays())
	pod.Spec.ServiceAccountName = ""
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	pod.Spec.Containers[0].Image = "registry.example.com/program"
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "key"}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "keys", MountPath: "/keys"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keys"}}}}
	if err := h.Pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	coded := base64.StdEncoding.EncodeToString([]byte(canary + "-file"))
	mend := h.region.front.Break(emulator.Fault{Operations: []string{"CreateContainerGroup"}, Answer: eci.Refuse(http.StatusBadRequest, "InvalidParameter",
		"the request says "+canary+"-variable, "+canary+"-registry, "+canary+"-file and "+coded)}) // a service that quotes the request
	err := p.CreatePod(ctx, pod.DeepCopy())
	if err == nil || strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), coded) {
		t.Errorf("a refusal that quotes the request: %v", err)
	}
	mend()
	if err := p.CreatePod(ctx, pod.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	h.UntilRuns(p, pod)
	h.Log(p, pod)
	if err := p.RunInContainer(ctx, "default", "web", "main", []string{"program", "x"}, &caller{}); err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("exec: %v", err)
	}
	if err := p.DeletePod(ctx, pod); err != nil {
		t.Fatal(err)
	}
	h.UntilGone(p, pod)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}

	allowed := regexp.MustCompile(`^(Container\.1\.EnvironmentVar\.1\.Value|Volume\.1\.ConfigFileVolume\.ConfigFileToPath\.1\.Content|ImageRegistryCredential\.1\.Password)$`)
	seen := map[string]bool{}
	for _, r := range h.region.front.Requests() {
		form, err := url.ParseQuery(string(r.Body))
		if err != nil {
			t.Fatal(err)
		}
		for name, values := range form {
			if text := values[0]; !strings.Contains(text, canary) && !strings.Contains(text, coded) {
				continue
			}
			if !allowed.MatchString(name) || r.Operation != "CreateContainerGroup" {
				t.Errorf("%s has a secret in %s", r.Operation, name)
			}
			seen[name] = true
		}
		if form.Get("Container.1.Name") != "" && form.Get("Container.1.EnvironmentVarHide") != "true" {
			t.Error("the variables are not hidden")
		}
		for name, values := range r.Header {
			if text := strings.Join(values, " "); strings.Contains(text, canary) || strings.Contains(text, secretKey) {
				t.Errorf("%s has a secret in the header %s", r.Operation, name)
			}
		}
		if strings.Contains(r.URL, canary) {
			t.Errorf("%s has a secret in its address", r.Operation)
		}
	}
	if len(seen) != 3 {
		t.Errorf("secrets were seen in %v, so the search proves nothing", seen)
	}
	for what, text := range map[string]string{"our log": said.String(), "a report": reports.String()} {
		if strings.Contains(text, canary) || strings.Contains(text, coded) || strings.Contains(text, secretKey) {
			t.Errorf("%s has a secret", what)
		}
	}
}
