// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// TestSecretsStayWhereTheyBelong searches for a secret in every place that does not need it.
func TestSecretsStayWhereTheyBelong(t *testing.T) {
	const canary = "canary-3f9a"
	h := newHome(t)
	said := &lockedBuffer{}
	old := log.L
	log.L = writesTo{said}
	defer func() { log.L = old }()
	token := filepath.Join(h.dir, "token")
	if err := os.WriteFile(token, []byte(canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"file":"`+token+`"}`), &h.config.Token); err != nil {
		t.Fatal(err)
	}
	h.Put("default", "own", canary)
	p, _ := h.start()
	pod := h.Pod("default", "web", stays())
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: canary}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "own", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "own"}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "own", MountPath: "/own"}}
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	kept := 0
	if err := filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == h.dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() {
			if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(canary)) {
				kept++
				if info.Mode().Perm() != 0o600 || strings.HasSuffix(path, ".log") {
					t.Errorf("%s has the secret, with the mode %v", path, info.Mode())
				}
			}
		}
		if filepath.Base(path) == "plugin" && info.Mode().Perm() != 0o600 {
			t.Errorf("the socket of the plugin has the mode %v", info.Mode())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if kept != 2 {
		t.Errorf("the secret is in %d files, want those of the token and of the record", kept)
	}
	h.stopServer()
	pod.UID = "another"
	err := p.CreatePod(h.Context(), pod)
	h.startServer()
	for _, r := range h.ReportsOf(pod.UID) {
		r.Spec = corev1.PodSpec{}
		said.add(fmt.Sprintf("%+v", r))
	}
	said.add(fmt.Sprint(err, p.driver.config))
	if strings.Contains(said.String(), canary) {
		t.Error("the secret is in what was said")
	}
	if err == nil || errors.Is(err, errCut) {
		t.Errorf("without a server: %v", err)
	}
	if slices.ContainsFunc(h.line.all(), func(r string) bool { return strings.Contains(r, canary) }) {
		t.Error("the secret is in a path")
	}
}

type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) add(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.WriteString(s + "\n")
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// writesTo is a logger that keeps all log lines.
type writesTo struct{ to *lockedBuffer }

func (w writesTo) Debug(args ...any)                       { w.to.add(fmt.Sprint(args...)) }
func (w writesTo) Debugf(format string, args ...any)       { w.to.add(fmt.Sprintf(format, args...)) }
func (w writesTo) Info(args ...any)                        { w.to.add(fmt.Sprint(args...)) }
func (w writesTo) Infof(format string, args ...any)        { w.to.add(fmt.Sprintf(format, args...)) }
func (w writesTo) Warn(args ...any)                        { w.to.add(fmt.Sprint(args...)) }
func (w writesTo) Warnf(format string, args ...any)        { w.to.add(fmt.Sprintf(format, args...)) }
func (w writesTo) Error(args ...any)                       { w.to.add(fmt.Sprint(args...)) }
func (w writesTo) Errorf(format string, args ...any)       { w.to.add(fmt.Sprintf(format, args...)) }
func (w writesTo) Fatal(args ...any)                       { w.to.add(fmt.Sprint(args...)) }
func (w writesTo) Fatalf(format string, args ...any)       { w.to.add(fmt.Sprintf(format, args...)) }
func (w writesTo) WithField(k string, v any) log.Logger    { w.to.add(fmt.Sprint(k, v)); return w }
func (w writesTo) WithFields(fields log.Fields) log.Logger { w.to.add(fmt.Sprint(fields)); return w }
func (w writesTo) WithError(err error) log.Logger          { w.to.add(fmt.Sprint(err)); return w }
