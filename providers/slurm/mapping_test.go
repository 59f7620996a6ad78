// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

func asks(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}
}

func completed(t testing.TB, c Config) Config {
	t.Helper()
	c.ClusterName, c.SharedDir = "home", "/shared"
	c, err := c.complete()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSubmission(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u-1", Annotations: map[string]string{AnnotationFlags: "--constraint=fast  --exclusive"}},
		Spec: corev1.PodSpec{
			ActiveDeadlineSeconds: new(int64(90)),
			InitContainers: []corev1.Container{
				{Name: "init", Resources: asks("3", "100Mi")},
				{Name: "side", RestartPolicy: &always, Resources: asks("500m", "50Mi")},
			},
			Containers: []corev1.Container{{Name: "a", Resources: asks("1100m", "1Gi")}, {Name: "b", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}, Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1")},
			}}},
		},
	}
	c := completed(t, Config{Partition: "main", Partitions: map[string]string{"gpu-node": "gpu"}, Account: "acct", Flags: []string{"--constraint", "--exclusive"}})
	got, err := c.submission(pod, identity{"home", "gpu-node", "ns", "web", "u-1"}, "/shared/home/gpu-node/u-1", "/shared/bin/p", "/shared/bin/s.sh")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"--parsable", "--no-requeue", "--job-name=vk-u-1", "--comment=virtual-kubelet/home/gpu-node/ns/web/u-1",
		"--output=/shared/home/gpu-node/u-1/job.log", "--open-mode=append", "--chdir=/", "--nodes=1", "--ntasks=1", "--cpus-per-task=3", "--mem=1203M",
		"--account=acct", "--partition=gpu", "--gres=gpu:2", "--time=3", "--constraint=fast", "--exclusive", "--", "/shared/bin/s.sh", "/shared/bin/p", "/shared/home/gpu-node/u-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("submission (-want +got):\n%s", diff)
	}
}

// TestOverheadMemory checks that a job requests the memory of its containers and of the program that runs them,
// and only the former if overheadMemory is 0.
func TestOverheadMemory(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: asks("1", "32Mi")}}}}
	for text, want := range map[string]int64{"": 160, "0": 32, "64Mi": 96} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		file := "apiVersion: " + APIVersion + "\nkind: " + Kind + "\n"
		if text != "" {
			file += "overheadMemory: " + text + "\n"
		}
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := LoadConfig(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, got, _ := completed(t, c).size(pod); got != want {
			t.Errorf("overheadMemory %q: %d MiB, want %d", text, got, want)
		}
	}
}

// TestScriptDropsTheToken checks that the program of a job does not get the token, so that /proc does not show
// it either.
func TestScriptDropsTheToken(t *testing.T) {
	dir := t.TempDir()
	path, program := filepath.Join(dir, "script"), filepath.Join(dir, "program")
	for name, text := range map[string]string{path: script, program: "#!/bin/sh\nexec env\n"} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	t.Setenv("SLURM_JWT", "canary")
	out, err := exec.CommandContext(t.Context(), path, program, dir).CombinedOutput()
	if err != nil || strings.Contains(string(out), "canary") || !strings.Contains(string(out), "PATH=") {
		t.Errorf("%v; the program has the token: %v", err, strings.Contains(string(out), "canary"))
	}
}

func TestFlagsThatAreNotAllowed(t *testing.T) {
	c := completed(t, Config{Flags: []string{"--constraint"}})
	for _, flags := range []string{"--nice=1", "--constraint", "-Cfast", "--constraint=a --wrap=id", "script.sh", "--constraint=\x00", "--constraintx=1"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationFlags: flags}}}
		if got, _, err := c.readFlags(pod); !errdefs.IsInvalidInput(err) {
			t.Errorf("flags %q: got %q and %v, want an error of the kind invalid-input", flags, got, err)
		}
	}
}

func TestConfigRefusesWhatCannotBe(t *testing.T) {
	for _, c := range []Config{
		{ClusterName: "a b", SharedDir: "/s"}, {ClusterName: "a", SharedDir: "s"}, {ClusterName: "a", SharedDir: "/s/%j"}, {ClusterName: "a", SharedDir: "/s", Partition: "-x"},
		{ClusterName: "a", SharedDir: "/s", Partition: "x y"}, {ClusterName: "a", SharedDir: "/s", Flags: []string{"--wrap"}}, {ClusterName: "a", SharedDir: "/s", Flags: []string{"nice"}},
		{ClusterName: "a", SharedDir: "/s", OverheadMemory: resource.MustParse("-1")}, {ClusterName: "a", SharedDir: "/s", Account: "$(id)"}, {ClusterName: "a", SharedDir: "/s", Partitions: map[string]string{"n": "--x"}},
	} {
		if _, err := c.complete(); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

// FuzzSubmission checks that nothing of a pod except its identity reaches the command line.
func FuzzSubmission(f *testing.F) {
	f.Add("a", "$(id)", "x y", "'\"\n", "--wrap=id")
	f.Fuzz(func(t *testing.T, image, arg, env, command, flags string) {
		c := completed(t, Config{Flags: []string{"--constraint"}})
		build := func(spec corev1.PodSpec) []string {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u-1", Annotations: map[string]string{AnnotationFlags: flags}}, Spec: spec}
			args, err := c.submission(pod, identity{"home", "n", "ns", "web", "u-1"}, "/d", "/p", "/s")
			if err != nil {
				return nil
			}
			return args
		}
		plain := build(corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}})
		full := build(corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: image, Args: []string{arg}, Command: []string{command}, Env: []corev1.EnvVar{{Name: "E", Value: env}},
		}}})
		if !slices.Equal(plain, full) {
			t.Errorf("the command line depends on the containers: %q and %q", plain, full)
		}
		for _, a := range full[min(len(full), 11):max(0, len(full)-4)] {
			if !strings.HasPrefix(a, "--constraint") {
				t.Errorf("a flag that is not allowed: %q", a)
			}
		}
	})
}
