// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	vkslog "github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

const canary = "canary-5f1c"

// withSecret are objects that use one secret everywhere.
type withSecret struct{ plain }

// Secret implements node.PodObjects.
func (withSecret) Secret(_ context.Context, _ *corev1.Pod, name string) (*corev1.Secret, error) {
	if name == "account" {
		return &corev1.Secret{Data: map[string][]byte{accountName: []byte("acc"), accountKey: []byte(canary + "-share")}}, nil
	}
	return &corev1.Secret{Data: map[string][]byte{"password": []byte(canary + "-file")}}, nil
}

// Container implements node.PodObjects.
func (withSecret) Container(_ context.Context, pod *corev1.Pod, _ string) (*corev1.Container, error) {
	c := pod.Spec.Containers[0].DeepCopy()
	c.Env = []corev1.EnvVar{{Name: "PASSWORD", Value: canary + "-variable"}, {Name: "URL", Value: "https://u:" + canary + "-variable@x"}, {Name: "PLAIN", Value: "green"}}
	return c, nil
}

// PullCredentials implements node.PullCredentials.
func (withSecret) PullCredentials(context.Context, *corev1.Pod) ([]node.RegistryCredential, error) {
	return []node.RegistryCredential{{Registry: "registry.example", Username: "u", Password: canary + "-registry"}}, nil
}

// shouts is a text that several goroutines may append to.
type shouts struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *shouts) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *shouts) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// fields calls see with each string of a JSON value and the path of its field.
func fields(v any, at string, see func(at, text string)) {
	switch v := v.(type) {
	case string:
		see(at, v)
	case []any:
		for _, inner := range v {
			fields(inner, at, see)
		}
	case map[string]any:
		for name, inner := range v {
			see(at, name)
			fields(inner, at+"."+name, see)
		}
	}
}

// TestSecretsStayWhereTheyBelong looks for canaries everywhere except in the fields for secrets.
func TestSecretsStayWhereTheyBelong(t *testing.T) {
	a := testAzure(t)
	p := a.provider(t, func(c *Config) {
		c.LogAnalytics = LogAnalytics{WorkspaceID: "w", WorkspaceKey: config.Literal(canary + "-workspace")}
	})
	p.UsePodObjects(withSecret{})
	p.UsePullCredentials(withSecret{})
	var said shouts
	ctx, cancel := context.WithCancel(log.WithLogger(context.WithoutCancel(t.Context()), vkslog.FromSlog(slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug})))))
	p.NotifyPods(ctx, func(pod *corev1.Pod) { fmt.Fprintln(&said, pod.Status.String()) })
	done := make(chan struct{})
	go func() { _ = p.RunInBackground(ctx); close(done) }()
	pod := programPod("u-1", program.Program{Stay: program.Forever})
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}}
	pod.Spec.Containers[0].Image = "registry.example/program"
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}},
		{Name: "share", VolumeSource: corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "account", ShareName: "x"}}},
	}
	from := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "password"}}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: from}, {Name: "URL", Value: "https://u:$(PASSWORD)@x"}, {Name: "PLAIN", Value: "green"}}

	coded := base64.StdEncoding.EncodeToString([]byte(canary + "-file"))
	mend := a.front.Break(emulator.Fault{Operations: []string{"Create"}, Answer: func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		w.WriteHeader(http.StatusBadRequest) // a service that quotes the request
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"code": "Other", "message": "not good: " + canary + "-variable " + canary + "-share " + canary +
			"-registry " + canary + "-workspace " + coded + " " + canary + "-file"}})
	}})
	err := p.CreatePod(ctx, pod)
	if err == nil || strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), coded) || !strings.Contains(err.Error(), "…") {
		t.Errorf("a refusal that quotes the request: %v", err)
	}
	mend()
	if err := p.CreatePod(ctx, pod); err != nil {
		t.Fatal(err)
	}
	until(t, "the pod to run", func() bool { return p.phase(pod) == corev1.PodRunning })
	if err := p.RunInContainer(ctx, "ns", pod.Name, "main", []string{"program", "x"}, &terminal{}); err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("exec: %v", err)
	}
	shown, _, _ := p.Cache().Get(pod.UID)
	fmt.Fprintln(&said, shown.String())
	inCommand := pod.DeepCopy()
	inCommand.UID, inCommand.Spec.Containers[0].Args = "u-2", []string{"--password=$(PASSWORD)"}
	if err := p.CreatePod(ctx, inCommand); err == nil || !strings.HasPrefix(err.Error(), "spec.containers[0].args") || strings.Contains(err.Error(), canary) {
		t.Errorf("a secret in an argument: %v", err)
	}
	if err := p.DeletePod(ctx, pod); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done

	allowed := regexp.MustCompile(`^\.properties\.(containers\.properties\.environmentVariables\.secureValue|volumes\.secret\.password|volumes\.azureFile\.storageAccountKey|imageRegistryCredentials\.password|diagnostics\.logAnalytics\.workspaceKey)$`)
	seen := map[string]bool{}
	for _, r := range a.front.Requests() {
		has := func(text string) bool {
			return strings.Contains(text, canary) || strings.Contains(text, coded) || r.Operation != "Token" && strings.Contains(text, clientSecret)
		}
		if has(r.URL) {
			t.Errorf("a request %s has a secret in its address", r.Operation)
		}
		for name, values := range r.Header {
			if has(strings.Join(values, " ")) {
				t.Errorf("a request %s has a secret in its header %s", r.Operation, name)
			}
		}
		var body any
		if json.Unmarshal(r.Body, &body) != nil {
			if has(string(r.Body)) {
				t.Errorf("a request %s has a secret in its body", r.Operation)
			}
			continue
		}
		fields(body, "", func(at, text string) {
			if !has(text) {
				return
			}
			if !allowed.MatchString(at) || r.Operation != "Create" {
				t.Errorf("a request %s has a secret in %s", r.Operation, at)
			}
			seen[at] = true
		})
	}
	if len(seen) != 5 {
		t.Errorf("secrets were seen in %v, so the search proves nothing", seen)
	}
	for _, secret := range []string{canary, coded, clientSecret} {
		if strings.Contains(said.String(), secret) {
			t.Errorf("our log or a report has %s: %s", secret, said.String())
		}
	}
}
