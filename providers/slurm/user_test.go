// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/slurmtest"
)

// ordinary is the number of a user that may only submit jobs to Slurm.
const ordinary = 65534

// ordinaryDir names the environment variable with the directory of the cluster, for the second process of the
// test.
const ordinaryDir = "VK_SLURM_ORDINARY_DIR"

// TestOrdinaryUser checks that the rights in the README are enough: the rights of an ordinary user of Slurm
// without other rights in Slurm or on the nodes. The test runs itself as that user.
func TestOrdinaryUser(t *testing.T) {
	if dir := os.Getenv(ordinaryDir); dir != "" {
		asOrdinaryUser(t, dir)
		return
	}
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{Others: true})
	program, shared := filepath.Join(c.Dir, "program"), filepath.Join(c.Dir, "users")
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(program, self, 0o755) //nolint:gosec // another user runs it
	}
	if err == nil {
		err = os.Mkdir(shared, 0o700)
	}
	if err == nil {
		err = os.Chown(shared, ordinary, ordinary)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestOrdinaryUser$", "-test.v", "-test.timeout=5m")
	cmd.Env = []string{ordinaryDir + "=" + c.Dir, "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR=" + filepath.Join(c.Dir, "tmp"), "HOME=/"}
	cmd.Dir, cmd.SysProcAttr = c.Dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestOrdinaryUser")) {
		logs, _ := filepath.Glob(filepath.Join(shared, "*", "*", "*", "job.log"))
		for _, path := range logs {
			data, _ := os.ReadFile(path)
			out = append(out, data...)
		}
		t.Fatalf("as user %d: %v\n%s", ordinary, err, out)
	}
}

func asOrdinaryUser(t *testing.T, dir string) {
	if os.Getuid() != ordinary {
		t.Fatalf("the user is %d, want %d", os.Getuid(), ordinary)
	}
	slurm := func(name string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_CONF=" + dir + "/slurm.conf"}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := slurm("scontrol", "update", "PartitionName=other", "State=DOWN"); err == nil || !strings.Contains(out, "Invalid user") {
		t.Fatalf("the user may change partitions: %s, %v", out, err)
	}
	canary := fmt.Sprintf("canary-%d", time.Now().UnixNano())
	config := Config{ClusterName: "user", SharedDir: filepath.Join(dir, "users"), SlurmConf: filepath.Join(dir, "slurm.conf")}
	p, _ := running(t, config, objects{"s": {Data: map[string][]byte{"key": []byte(canary)}}})
	pod := shell("a", `id -u; cat /secret/key; echo; stat -L -c %a /secret/key; touch /data/x && ls /data; ls -A `+dir+`/users | wc -l; trap "exit 0" TERM; while :; do sleep 0.2; done`)
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/secret"}, {Name: "e", MountPath: "/data"}}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", DefaultMode: new(int32(0o400))}}},
		{Name: "e", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	await(t, "the pod is to run", func() (bool, string) {
		got, err := p.GetPod(t.Context(), "ns", "a")
		return err == nil && got.Status.Phase == corev1.PodRunning, fmt.Sprintf("%+v, %v", got.Status, err)
	})
	want := fmt.Sprintf("%d\n%s\n400\nx\n0\n", ordinary, canary)
	await(t, "the container is to have its user, its files and no others", func() (bool, string) {
		r, err := p.GetContainerLogs(t.Context(), "ns", "a", "c", api.ContainerLogOpts{})
		if err != nil {
			return false, err.Error()
		}
		defer r.Close()
		text, err := io.ReadAll(r)
		return err == nil && string(text) == want, fmt.Sprintf("%q, %v, want %q", text, err, want)
	})
	var out bytes.Buffer
	if err := p.RunInContainer(t.Context(), "ns", "a", "c", []string{"/bin/sh", "-c", "id -u; cat /secret/key"}, output{out: &out}); err != nil || out.String() != fmt.Sprintf("%d\n%s", ordinary, canary) {
		t.Errorf("exec: %q, %v", out.String(), err)
	}
	p.mu.Lock()
	local := filepath.Dir(p.pods[pod.UID].said.Socket)
	p.mu.Unlock()
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	await(t, "the pod is to leave nothing", func() (bool, string) {
		for _, path := range []string{local, filepath.Join("/dev/shm", filepath.Base(local)), p.place.pod(pod.UID)} {
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				return false, fmt.Sprint(path, err)
			}
		}
		jobs, err := slurm("squeue", "--noheader", "--format=%i")
		return err == nil && strings.TrimSpace(jobs) == "", fmt.Sprint(jobs, err)
	})
	pod = shell("b", "exit 0")
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(0))}
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	await(t, "a user that the job cannot become is to be refused", func() (bool, string) {
		got, err := p.GetPod(t.Context(), "ns", "b")
		if err != nil {
			return false, err.Error()
		}
		s := fmt.Sprintf("%+v", got.Status.ContainerStatuses)
		return strings.Contains(s, "cannot change that"), s
	})
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	await(t, "the pod is to be gone", func() (bool, string) {
		_, err := os.Stat(p.place.pod(pod.UID))
		return os.IsNotExist(err), fmt.Sprint(err)
	})
}

// TestNodeForEachPartition checks that nodes of one process run their pods in partitions of their own, and that
// each node sees only its own pods.
func TestNodeForEachPartition(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{})
	config := testConfig(c, "partitions")
	config.Partition, config.Partitions = "main", map[string]string{"second": "other"}
	first, _ := running(t, config, nil)
	second, _ := runningAs(t, "second", config, nil)
	for i, p := range []*provider{first, second} {
		if err := p.CreatePod(t.Context(), shell(fmt.Sprintf("p%d", i), "sleep 300")); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range []*provider{first, second} {
		name := fmt.Sprintf("p%d", i)
		awaitPhase(t, p, name, "Running")
		if all, err := p.GetPods(t.Context()); err != nil || len(all) != 1 || all[0].Name != name {
			t.Errorf("node %d has %d pods, %v, want %s alone", i, len(all), err, name)
		}
		out, err := c.Run(t.Context(), "squeue", "--noheader", "--name="+jobName(types.UID("uid-"+name)), "--format=%P")
		if want := []string{"main", "other"}[i]; err != nil || strings.TrimSpace(out) != want {
			t.Errorf("%s is in partition %q, %v, want %s", name, out, err, want)
		}
	}
	capacities := [2]int64{}
	for i, p := range []*provider{first, second} {
		offered, err := p.partition(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		capacities[i] = offered.Cpu().Value()
	}
	if capacities != [2]int64{128, 64} {
		t.Errorf("the nodes have %v CPUs, want those of their partitions", capacities)
	}
}
