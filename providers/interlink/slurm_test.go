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

	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/slurmtest"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestRunnerSlurm runs pods as jobs of a real Slurm, through the provider, an API server, our plugin, and the
// provider slurm. The plugin is restarted meanwhile.
func TestRunnerSlurm(t *testing.T) {
	c := slurmtest.Start(t, slurmtest.Options{Nodes: 1})
	does := filepath.Join(c.Dir, "contractprogram")
	cmd := exec.Command("go", "build", "-o", does, "github.com/virtual-kubelet/virtual-kubelet/providertest/program/contractprogram")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(string(out), err)
	}
	h := &home{Home: remotetest.NewHome(t, "vk-0"), dir: shortDir(t)}
	config := filepath.Join(h.dir, "slurm.yaml")
	write(t, config, fmt.Sprintf("apiVersion: %s\nkind: %s\nclusterName: site\nsharedDir: %s\nslurmConf: %s\nfastEvery: 300ms\nslowEvery: 1s\n",
		slurm.APIVersion, slurm.Kind, c.Shared, c.Conf))
	_, stop := startPlugin(t, h.dir, slurm.Provider(), config)
	h.startServer()
	h.config = Config{URL: h.url}
	p, _ := h.start()
	p.UsePodObjects(withInit{h})

	h.Put("default", "own", "hello from home")
	container := func(name string, what program.Program) corev1.Container {
		return corev1.Container{Name: name, Image: "none", Command: []string{does}, Args: what.Args(), VolumeMounts: []corev1.VolumeMount{
			{Name: "own", MountPath: "/mnt/own"}, {Name: "shared", MountPath: "/mnt/shared"},
		}}
	}
	pod := h.Pod("default", "job", program.Program{})
	pod.Spec.RestartPolicy, pod.Spec.ServiceAccountName = corev1.RestartPolicyNever, ""
	pod.Spec.InitContainers = []corev1.Container{container("first", program.Program{Write: []string{"/mnt/shared/made"}})}
	pod.Spec.Containers = []corev1.Container{container("main", program.Program{Show: []string{"/mnt/own/key", "/mnt/shared/made"}, Exit: 7})}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "own", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "own"}}},
		{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	service := h.Pod("default", "service", program.Program{})
	service.Spec.ServiceAccountName = ""
	service.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", Command: []string{does}, Args: stays().Args()}}
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
	if got := h.UntilRuns(p, service); got.Annotations[wire.AnnotationJob] == "" {
		t.Errorf("annotations: %v", got.Annotations)
	}
	jobs := func() int {
		out, err := c.Run(t.Context(), "squeue", "--noheader", "--states=PENDING,RUNNING")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(out, "\n")
	}
	stop()
	startPlugin(t, h.dir, slurm.Provider(), config)
	h.Until("the plugin is back", func() (bool, string) { err := p.Ping(h.Context()); return err == nil, fmt.Sprint(err) })
	h.UntilRuns(p, service)
	eventually(t, "the service's is the only job after a restart", func() bool { return jobs() == 1 }) // the other pod's script has ended before its job
	h.Delete(p, pod)
	h.Delete(p, service)
	h.UntilGone(p, pod)
	h.UntilGone(p, service)
	eventually(t, "no job is left", func() bool { return jobs() == 0 })
	eventually(t, "no file of a pod is left", func() bool {
		left, _ := os.ReadDir(filepath.Join(h.dir, "state", "pods"))
		files, _ := filepath.Glob(filepath.Join(c.Shared, "site", "*", "*"))
		return len(left) == 0 && len(files) == 0
	})
}
