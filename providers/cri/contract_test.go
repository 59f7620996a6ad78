// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cri

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/containerdtest"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// contractImage has the program of the contract. It is in no registry.
const contractImage = "vk.test/contract:1"

// contractProgram builds the image of the contract.
func contractProgram(t *testing.T) containerdtest.Image {
	t.Helper()
	path := filepath.Join(t.TempDir(), "contractprogram")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/virtual-kubelet/virtual-kubelet/providertest/program/contractprogram")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program of the contract: %v: %s", err, out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return containerdtest.Image{Names: []string{contractImage}, Files: map[string]containerdtest.File{
		"/bin/contractprogram": {Data: data}, "/tmp": {Mode: os.ModeDir | os.ModeSticky | 0o777},
	}}
}

// TestContract runs the contract of providers with a private containerd. Each check has a node of its own there.
func TestContract(t *testing.T) {
	containerd := containerdtest.Start(t, containerdtest.Options{})
	if err := containerd.Import(t.Context(), contractProgram(t)); err != nil {
		t.Fatal(err)
	}
	conn, err := containerd.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	m := machine{containerd, runtimeapi.NewRuntimeServiceClient(conn)}
	providertest.Run(t, providertest.Harness{
		Backend: m.backend,
		Container: func(_ *corev1.Pod, c *corev1.Container, p program.Program) error {
			c.Image, c.Command, c.Args = contractImage, []string{"/bin/contractprogram"}, p.Args()
			return nil
		},
		Command: func(p program.Program) ([]string, error) {
			return append([]string{"/bin/contractprogram"}, p.Args()...), nil
		},
		Patience: time.Minute, Every: 50 * time.Millisecond, Parallel: 8, Many: 8,
		Subject:  providertest.Subject{Provider: "cri", Backend: "containerd, as packaged by Debian"},
		Unproven: unproven,
	})
}

// machine is a containerd, with a client that bypasses outages.
type machine struct {
	*containerdtest.Containerd
	client runtimeapi.RuntimeServiceClient
}

// backend returns the containerd as the backend of one check: with the sandboxes of its own node, behind a
// socket that can fail.
func (m machine) backend(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
	dir := filepath.Join(m.Dir, env.Namespace)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "s")
	r, err := newRelay(ctx, socket, strings.TrimPrefix(m.Endpoint(), "unix://"))
	if err != nil {
		return nil, err
	}
	env.Node = env.Node.DeepCopy()
	env.Node.Name = env.Namespace // the runtime distinguishes nodes by their names
	in := cli.ProviderInput{ProviderConfig: env.ProviderConfig, KubeClusterDomain: "cluster.local"}
	config := Config{
		Endpoint: "unix://" + socket, Root: filepath.Join(dir, "pods"), LogRoot: filepath.Join(dir, "logs"), CgroupParent: m.CgroupParent,
	}
	return &providertest.Backend{
		Open:  func(ctx context.Context) (node.PodLifecycleHandler, error) { return New(ctx, in, config) },
		Close: r.end,
		Kept:  map[string]providertest.Kept{"files": {Most: 1, Rule: "an empty folder for the messages of containers, one for a node"}},
		Left: func() (map[string][]string, error) {
			left := map[string][]string{}
			sandboxes, err := m.client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
			for _, s := range sandboxes.GetItems() {
				if s.GetMetadata().GetNamespace() == env.Namespace {
					left["sandboxes"] = append(left["sandboxes"], s.GetMetadata().GetName()+" "+s.GetId())
				}
			}
			containers, errContainers := m.client.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
			for _, c := range containers.GetContainers() {
				if c.GetLabels()["io.kubernetes.pod.namespace"] == env.Namespace {
					left["containers"] = append(left["containers"], c.GetMetadata().GetName()+" "+c.GetId())
				}
			}
			files, errFiles := providertest.FilesBelow(dir)
			left["files"] = files
			return left, errors.Join(err, errContainers, errFiles)
		},
		Instances: m.instances, Kill: m.kill, Lose: m.lose, Outage: r.outage,
	}, nil
}

// ofPod returns the labels that sandboxes and containers of a pod have.
func ofPod(pod *corev1.Pod) map[string]string {
	return map[string]string{"io.kubernetes.pod.uid": string(pod.UID)}
}

// running returns the running containers of a pod, by name.
func (m machine) running(pod *corev1.Pod) (map[string][]string, error) {
	list, err := m.client.ListContainers(context.Background(), &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		LabelSelector: ofPod(pod), State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}})
	found := map[string][]string{}
	for _, c := range list.GetContainers() {
		name := c.GetMetadata().GetName()
		found[name] = append(found[name], c.GetId())
	}
	return found, err
}

func (m machine) instances(pod *corev1.Pod) (n int, err error) {
	found, err := m.running(pod)
	for _, ids := range found {
		n = max(n, len(ids))
	}
	return n, err
}

func (m machine) kill(pod *corev1.Pod, container string) error {
	found, err := m.running(pod)
	if err != nil {
		return err
	}
	if len(found[container]) != 1 {
		return fmt.Errorf("container %s of pod %s runs %d times", container, pod.Name, len(found[container]))
	}
	status, err := m.client.ContainerStatus(context.Background(), &runtimeapi.ContainerStatusRequest{ContainerId: found[container][0], Verbose: true})
	if err != nil {
		return err
	}
	var info struct{ PID int }
	if err := json.Unmarshal([]byte(status.GetInfo()["info"]), &info); err != nil || info.PID == 0 {
		return fmt.Errorf("find the process of container %s in %q: %w", container, status.GetInfo(), err)
	}
	return syscall.Kill(info.PID, syscall.SIGKILL)
}

// lose removes the sandbox of a pod, and so everything that the runtime knows of its containers.
func (m machine) lose(pod *corev1.Pod) error {
	list, err := m.client.ListPodSandbox(context.Background(), &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: ofPod(pod)}})
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range list.GetItems() {
		errs = append(errs, m.remove(s.GetId()))
	}
	return errors.Join(errs...)
}

// remove removes a sandbox. At the same time, a provider that has seen the end of the container stops the
// sandbox, and the network plugin fails for one of the two. If it fails here, the next attempt finds the sandbox
// without a network.
func (m machine) remove(sandbox string) error {
	var err error
	for range 3 {
		if _, err = m.client.RemovePodSandbox(context.Background(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: sandbox}); err == nil {
			return nil
		}
	}
	return err
}

// unproven are the features that the contract does not prove here: they need more than one machine and a daemon,
// or have no effect that a container can observe.
var unproven = map[capability.Feature]string{
	capability.InPlaceResize:    "no check of the contract changes a pod that runs; podruntime's tests do",
	capability.CertificateFiles: "no check of the contract has certificates; those of podruntime's volumes do, and test/integration with an API server",
	capability.PersistentVolume: "no check of the contract has PersistentVolumes; those of podruntime's volumes do, and test/integration with an API server",
	capability.TokenVolumes:     "no check of the contract has tokens; test/containerd reads one in a container",
	capability.MountPropagation: "what it does is seen by a container that may mount, and by the machine",
	capability.EnvFiles:         "no program of the contract writes a file of variables",
	capability.HostPortMapping:  "no check of the contract knows an address of the machine",
	capability.HostPorts:        "no check of the contract knows an address of the machine",
	capability.SharedProcesses:  "no program of the contract looks at other processes",
	capability.AppArmor:         "the kernel of a test need not have it; the runtime keeps it",
	capability.SELinux:          "the kernel of a test need not have it; the runtime keeps it",
	capability.WindowsOptions:   "they are without effect for containers of Linux",
	capability.RuntimeClass:     "a class needs a second handler of the runtime, and the containerd of the tests has one",
}
