// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interlink

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestRealContainers runs containers of runc, through the provider, an API server, our plugin, and the provider
// process.
func TestRealContainers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("containers of runc need root: run the test as root, as CI does")
	}
	if _, err := exec.LookPath("runc"); err != nil {
		t.Skip("runc is not installed")
	}
	dir := shortDir(t)
	images := filepath.Join(dir, "images")
	if err := os.Mkdir(images, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"build", "-o", filepath.Join(dir, "contractprogram"), "github.com/virtual-kubelet/virtual-kubelet/providertest/program/contractprogram"},
		{"run", "../process/demo/pack", "-name", "contract", "-o", filepath.Join(images, "contract.tar"), filepath.Join(dir, "contractprogram")},
	} {
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatal(string(out), err)
		}
	}
	config := filepath.Join(dir, "process.yaml")
	write(t, config, fmt.Sprintf("apiVersion: %s\nkind: %s\nstateDir: %s/process\nimages: [%s]\nisolation: runc\n", process.APIVersion, process.Kind, dir, images))
	startPlugin(t, dir, process.Provider(), config)
	h := &home{Home: remotetest.NewHome(t, "vk-0"), dir: dir}
	h.startServer()
	h.config = Config{URL: h.url, Features: []capability.Feature{capability.RunAsUser}}
	p, _ := h.start()

	h.Put("default", "own", "hello from home")
	container := func(name string, does program.Program) corev1.Container {
		return corev1.Container{
			Name: name, Image: "contract", Command: []string{"/bin/contractprogram"}, Args: does.Args(),
			VolumeMounts: []corev1.VolumeMount{{Name: "own", MountPath: "/own"}, {Name: "shared", MountPath: "/shared"}},
		}
	}
	pod := h.Pod("default", "job", program.Program{})
	pod.Spec.RestartPolicy, pod.Spec.ServiceAccountName = corev1.RestartPolicyNever, ""
	pod.Spec.InitContainers = []corev1.Container{container("first", program.Program{Write: []string{"/shared/made"}})}
	pod.Spec.Containers = []corev1.Container{container("main", program.Program{Show: []string{"/own/key", "/shared/made"}, Exit: 7})}
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "own", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "own"}}},
		{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	service := h.Pod("default", "service", program.Program{})
	service.Spec.ServiceAccountName = ""
	service.Spec.Containers = []corev1.Container{{
		Name: "main", Image: "contract", Command: []string{"/bin/contractprogram"}, Args: stays().Args(),
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
	}}
	// the environment comes from the home, which knows no init containers
	p.UsePodObjects(withInit{h})
	h.Create(p, service)
	h.Create(p, pod)
	h.Until("the job ends", func() (bool, string) {
		got, err := p.GetPod(h.Context(), "default", "job")
		if err != nil {
			return false, err.Error()
		}
		return got.Status.Phase == corev1.PodFailed && got.Status.ContainerStatuses[0].State.Terminated.ExitCode == 7, fmt.Sprintf("%+v", got.Status)
	})
	if log := h.Log(p, pod); !strings.Contains(log, "hello from home") || !strings.Contains(log, "written") {
		t.Errorf("the job has printed %q", log)
	}
	h.UntilRuns(p, service)
	limit := limitOf(t, string(service.UID))
	if limit != "67108864" {
		t.Errorf("the limit of memory is %q, want 64Mi", limit)
	}
	h.Delete(p, pod)
	h.Delete(p, service)
	h.UntilGone(p, pod)
	h.UntilGone(p, service)
	eventually(t, "the containers to be gone", func() bool {
		left, _ := filepath.Glob(filepath.Join(dir, "process", "containers", "*"))
		return len(left) == 0
	})
	if mounts, err := os.ReadFile("/proc/mounts"); err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("mounts are left: %v", err)
	}
}

// limitOf returns the memory limit in the cgroup of a pod's container.
func limitOf(t *testing.T, uid string) (limit string) {
	t.Helper()
	eventually(t, "the cgroup of the container", func() bool {
		_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
			if err == nil && (d.Name() == "memory.limit_in_bytes" || d.Name() == "memory.max") && strings.Contains(strings.ReplaceAll(path, "_", "-"), uid) {
				if data, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(data)) == "67108864" {
					limit = strings.TrimSpace(string(data))
				}
			}
			return nil
		})
		return limit != ""
	})
	return limit
}
