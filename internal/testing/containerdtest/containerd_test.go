// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerdtest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// run starts a pod with one sleeping container, and returns the IDs of sandbox and container.
func run(t *testing.T, c *Containerd) (sandbox, container string) {
	t.Helper()
	image, err := BusyboxImage("vk.test/busybox:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Import(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	client := runtimeClient(t, c)
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "p", Namespace: "default", Uid: "u"},
		Linux:    &runtimeapi.LinuxPodSandboxConfig{CgroupParent: c.CgroupParent},
	}
	made, err := client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	created, err := client.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: made.GetPodSandboxId(), SandboxConfig: config,
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "c"},
			Image:    &runtimeapi.ImageSpec{Image: "vk.test/busybox:1"},
			Args:     []string{"sleep", "1000"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: created.GetContainerId()}); err != nil {
		t.Fatal(err)
	}
	return made.GetPodSandboxId(), created.GetContainerId()
}

func runtimeClient(t *testing.T, c *Containerd) runtimeapi.RuntimeServiceClient {
	t.Helper()
	conn, err := c.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return runtimeapi.NewRuntimeServiceClient(conn)
}

// leftovers returns everything that a containerd in this place has on the machine.
func leftovers(t *testing.T, c *Containerd) (found []string) {
	t.Helper()
	if _, err := os.Stat(c.Dir); err == nil {
		found = append(found, "directory "+c.Dir)
	}
	if _, err := os.Stat("/sys/class/net/" + c.Bridge); err == nil {
		found = append(found, "bridge "+c.Bridge)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), c.Dir+"/") {
		found = append(found, "mounts")
	}
	processes, err := exec.CommandContext(t.Context(), "ps", "-eo", "args").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(processes), c.Dir+"/") {
		found = append(found, "processes")
	}
	if _, err := os.Stat("/sys/fs/cgroup/memory" + c.CgroupParent); err == nil {
		found = append(found, "cgroup")
	}
	return found
}

func TestContainersOutliveContainerd(t *testing.T) {
	c := Start(t, Options{})
	_, container := run(t, c)
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	status, err := runtimeClient(t, c).ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: container})
	if err != nil {
		t.Fatal(err)
	}
	if got := status.GetStatus().GetState(); got != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("container is %v after a kill of containerd, want it running", got)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if found := leftovers(t, c); len(found) > 0 {
		t.Errorf("left after Close: %v", found)
	}
}

func TestPlaceOfAKilledProcessIsCleaned(t *testing.T) {
	first := Start(t, Options{})
	run(t, first)
	if found := leftovers(t, first); len(found) < 4 {
		t.Fatalf("a running pod has only %v on the machine; the test sees too little", found)
	}
	// When its process is killed, containerd dies too, and the containers remain.
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := first.removeRemains(); err != nil {
		t.Error(err)
	}
	if found := leftovers(t, first); len(found) > 0 {
		t.Errorf("left after the next process has cleaned: %v", found)
	}
}
