// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A pod status has the name of the image, although a kubelet asks for containers by image ID.
func TestStatusHasTheNameOfTheImage(t *testing.T) {
	w := open(t, nil)
	image, err := w.Images().ImageStatus(t.Context(), &runtimeapi.ImageSpec{Image: "demo"}, false)
	if err != nil {
		t.Fatal(err)
	}
	id := w.run("main", func(c *runtimeapi.ContainerConfig) { c.Image.Image = image.GetImage().GetId() }, "sleep", "600")
	if got := w.status(id).GetImage().GetImage(); got != "docker.io/library/demo:latest" {
		t.Errorf("got %q", got)
	}
	if err := w.Images().RemoveImage(t.Context(), &runtimeapi.ImageSpec{Image: image.GetImage().GetId()}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("removing an image that a container has: got %v", err)
	}
}

func TestWhatASandboxRefuses(t *testing.T) {
	w := open(t, nil)
	config := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "q", Namespace: "default", Uid: "u2"}}
	if _, err := w.RunPodSandbox(t.Context(), config, "runsc"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("with a runtime handler: got %v", err)
	}
	if err := w.StopPodSandbox(t.Context(), w.sandbox); err != nil {
		t.Fatal(err)
	}
	if _, err := w.tryRun("late", nil, "sleep", "600"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a container in a sandbox that is stopped: got %v", err)
	}
}

func TestContainersHaveTheDNSOfTheirPod(t *testing.T) {
	w := open(t, nil)
	sandbox, err := w.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "q", Namespace: "default", Uid: "u2"}, LogDirectory: w.logs,
		DnsConfig: &runtimeapi.DNSConfig{Servers: []string{"192.0.2.53"}, Searches: []string{"a.test", "b.test"}, Options: []string{"ndots:5"}},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	w.sandbox, sandbox = sandbox, w.sandbox
	t.Cleanup(func() { w.sandbox, _ = sandbox, w.RemovePodSandbox(context.Background(), w.sandbox) })
	w.ended(w.run("dns", nil, "cat", "/etc/resolv.conf"))
	if got, want := w.log("dns"), "stdout F search a.test b.test\nstdout F nameserver 192.0.2.53\nstdout F options ndots:5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
