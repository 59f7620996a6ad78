// SPDX-License-Identifier: Apache-2.0

//go:build linux

package azurebatch

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// says runs echo in a pod, and returns the output.
func (h *home) says(d *driver, pod *corev1.Pod) (string, error) {
	h.Helper()
	who := &remotetest.Console{}
	err := d.kit.RunInContainer(h.Context(), pod.Namespace, pod.Name, "main", []string{"/bin/sh", "-c", "echo in the pod"}, who)
	return who.Out.String(), err
}

// TestWrongHostKey: the node does not authenticate to a machine whose SSH host key differs from the key that the task of the pod recorded.
func TestWrongHostKey(t *testing.T) {
	t.Parallel()
	h := newHome(t, aPool(), 1, nil)
	d, _ := h.start()
	pod := h.shell("reached", "sleep 1000")
	h.Create(d.kit, pod)
	h.UntilRuns(d.kit, pod)
	if out, err := h.says(d, pod); err != nil || out != "in the pod\n" || h.cloud.Logins() == 0 {
		t.Fatalf("with the key: %q, %v, after %d logins", out, err, h.cloud.Logins())
	}
	before := h.cloud.Logins()
	h.cloud.ReplaceHostKeys()
	if out, err := h.says(d, pod); err == nil || !strings.Contains(err.Error(), "its key is SHA256:") || out != "" {
		t.Errorf("with another key: %q, %v", out, err)
	}
	if now := h.cloud.Logins(); now != before {
		t.Errorf("the machine with another key was shown the user's %d times", now-before)
	}
}

// TestUserOfMachine: a machine gets one user. The user is created again if the machine has lost it, and has the key of the latest process.
func TestUserOfMachine(t *testing.T) {
	t.Parallel()
	h := newHome(t, aPool(), 1, nil)
	d, stop := h.start()
	pod := h.shell("reached", "sleep 1000")
	h.Create(d.kit, pod)
	h.UntilRuns(d.kit, pod)
	reached := func(when string, made, replaced int) {
		t.Helper()
		if out, err := h.says(d, pod); err != nil || out != "in the pod\n" {
			t.Errorf("%s: %q, %v", when, out, err)
		}
		if m, r := len(h.cloud.front.Requests("CreateNodeUser")), len(h.cloud.front.Requests("ReplaceNodeUser")); m != made || r != replaced {
			t.Errorf("%s: %d creates and %d replacements of users, want %d and %d", when, m, r, made, replaced)
		}
	}
	reached("at first", 1, 0)
	reached("once more", 1, 0)
	h.cloud.ForgetUsers()
	reached("after the machine was made anew", 2, 0)
	stop()
	d, _ = h.start()
	h.UntilRuns(d.kit, pod)
	reached("by the next process", 3, 1)
	for _, r := range h.cloud.front.Requests("CreateNodeUser") {
		if !strings.Contains(string(r.Body), `"isAdmin":true`) || !strings.Contains(string(r.Body), `"sshPublicKey":"ssh-rsa `) {
			t.Errorf("it asked for %s", r.Body)
		}
	}
}

// TestStreamsRefusedWithoutSSH: without SSH in the configuration, no user is created, and the error has the reason.
func TestStreamsRefusedWithoutSSH(t *testing.T) {
	t.Parallel()
	s := newStill()
	h := newHome(t, aPool(), 1, s)
	s.put = h.cloud.Store.PutWith
	h.config.SSH.Enabled = false
	d, _ := h.start()
	pod := h.shell("apart", "sleep 1000")
	h.Create(d.kit, pod)
	h.UntilRuns(d.kit, pod)
	_, exec := h.says(d, pod)
	for what, err := range map[string]error{
		"exec": exec, "attach": d.kit.AttachToContainer(t.Context(), pod.Namespace, pod.Name, "main", &remotetest.Console{}),
		"port-forward": d.kit.PortForward(t.Context(), pod.Namespace, pod.Name, 80, nil),
	} {
		if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "ssh.enabled") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := h.cloud.front.Requests("CreateNodeUser", "GetNodeRemoteLoginSettings"); len(got) > 0 {
		t.Errorf("there were %d requests for it", len(got))
	}
}
