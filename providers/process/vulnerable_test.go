// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// TestSecurityJ10AVulnerableRuntimeIsRefusedWhereAskedFor checks that a vulnerable runtime is refused if the
// configuration asks for that. Otherwise the node and the command doctor report it.
func TestSecurityJ10AVulnerableRuntimeIsRefusedWhereAskedFor(t *testing.T) {
	if os.Getenv(isolationEnv) != "" {
		t.Skip("the test names the isolation itself")
	}
	needRunc(t)
	images, err := imageDir()
	if err != nil {
		t.Fatal(images, err)
	}
	for says, c := range map[string]struct{ refused, shown string }{
		"runc version 1.2.7":  {"CVE-2025-31133, CVE-2025-52565, CVE-2025-52881 are open; install 1.2.8 or 1.3.3 or 1.4.0-rc.3 or newer", "CVE-2025-31133, CVE-2025-52565, CVE-2025-52881, CVE-2026-41579"},
		"runc version 1.3.3":  {"", "CVE-2026-41579"},
		"runc version 1.5.0":  {"", "none"},
		"youki version 0.5.7": {"nothing is known", "unknown"},
	} {
		t.Run(says, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "runc")
			script := "#!/bin/sh\n[ \"$1\" = --version ] && echo '" + says + "' && exit 0\nexec runc \"$@\"\n"
			if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			config := process.Config{Isolation: process.IsolationRunc, RuntimePath: program, Images: []string{images}, StateDir: filepath.Join(t.TempDir(), "state")}
			required := config
			required.RequirePatchedRuntime = true
			r, err := process.Open(t.Context(), required, "n1", "192.0.2.1")
			if err == nil {
				r.Close(t.Context())
			}
			if (err != nil) != (c.refused != "") || err != nil && (!strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), "requirePatchedRuntime")) {
				t.Errorf("with requirePatchedRuntime: got %v, want %q", err, c.refused)
			}
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
			p, err := process.New(t.Context(), cli.ProviderInput{
				ProviderConfig: nodeutil.ProviderConfig{Node: n, Recorder: record.NewFakeRecorder(100)}, InternalIP: "127.0.0.1", KubeClusterDomain: "cluster.local",
			}, config)
			if err != nil {
				t.Fatal(err)
			}
			p.ConfigureNode(t.Context(), n)
			if got := n.Annotations[process.VulnerabilitiesAnnotation]; got != c.shown {
				t.Errorf("the node names %q, want %q", got, c.shown)
			}
			_, number, _ := strings.Cut(says, " version ")
			if got := n.Status.NodeInfo.ContainerRuntimeVersion; got != "process://runc-"+number {
				t.Errorf("the node has the runtime %q", got)
			}
			versions, advice := p.Advise(t.Context())
			if len(versions) != 1 || !strings.Contains(versions[0], says) || (len(advice) > 0) != strings.HasPrefix(c.shown, "CVE") ||
				len(advice) > 0 && !strings.Contains(advice[0].Problem, c.shown) {
				t.Errorf("the command doctor hears %q and %q", versions, advice)
			}
			ended, end := context.WithCancel(t.Context())
			end()
			if err := p.RunInBackground(ended); err != nil { // gives up the directory
				t.Error(err)
			}
		})
	}
	none := process.Config{Isolation: process.IsolationNone, RequirePatchedRuntime: true, StateDir: t.TempDir()}
	if _, err := process.Open(t.Context(), none, "n1", "192.0.2.1"); err == nil || !strings.Contains(err.Error(), "requirePatchedRuntime") {
		t.Errorf("isolation none: got %v", err)
	}
}
