// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/slurmtest"
)

// objects are the Secrets of a test.
type objects map[string]*corev1.Secret

func (o objects) ConfigMap(_ context.Context, _ *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
}

func (o objects) Secret(_ context.Context, _ *corev1.Pod, name string) (*corev1.Secret, error) {
	if s := o[name]; s != nil {
		return s, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
}

func (objects) Container(_ context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return pod.Spec.Containers[i].DeepCopy(), nil
		}
	}
	return nil, fmt.Errorf("no container %s", name)
}

// tokens returns the service account tokens of a test.
type tokens struct{}

func (tokens) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (node.PodToken, error) {
	return node.PodToken{Token: "token-1", ExpiresAt: time.Now().Add(time.Hour), RefreshAt: time.Now().Add(time.Hour)}, nil
}

// running runs a provider until its test ends or stop is called.
func running(t *testing.T, config Config, o objects) (p *provider, stop func()) {
	t.Helper()
	return runningAs(t, "node", config, o)
}

// runningAs runs a provider whose node has the given name.
func runningAs(t *testing.T, node string, config Config, o objects) (p *provider, stop func()) {
	t.Helper()
	config, err := config.complete()
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDriver(cli.ProviderInput{ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}}}, config)
	if err != nil {
		t.Fatal(err)
	}
	p = &provider{d.provider, d}
	p.settle = 2 * time.Second
	p.UsePodObjects(o)
	p.UsePodTokens(tokens{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.RunInBackground(ctx)
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return p, stop
}

// shell returns a pod that runs a script.
func shell(name, text string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{
			NodeName: "node", RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(1)),
			Containers: []corev1.Container{{Name: "c", Image: "none", Command: []string{"/bin/sh", "-c", text}}},
		},
	}
}

// await waits until ok reports true. On failure it shows the text that ok returned.
func await(t *testing.T, what string, ok func() (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		done, how := ok()
		if done {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %s", what, how)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (p *provider) phase(t *testing.T, name string) string {
	pod, err := p.GetPod(t.Context(), "ns", name)
	if err != nil {
		return err.Error()
	}
	return string(pod.Status.Phase)
}

func awaitPhase(t *testing.T, p *provider, name, want string) {
	t.Helper()
	await(t, name+" is to be "+want, func() (bool, string) { got := p.phase(t, name); return got == want, got })
}

// TestControllerRestartsUnderPods checks that 50 pods are unaffected while the controller is away, and that
// their ends are known afterwards.
func TestControllerRestartsUnderPods(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{Megabytes: 64000}) // room for all of them at once
	p, _ := running(t, testConfig(c, "restart"), nil)
	gate := filepath.Join(c.Dir, "gate")
	const many = 50
	for i := range many {
		pod := shell(fmt.Sprintf("p%d", i), fmt.Sprintf("touch %s.%d; while [ ! -e %s ]; do sleep 1; done; exit 3", gate, i, gate))
		if err := p.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	for i := range many {
		awaitPhase(t, p, fmt.Sprintf("p%d", i), "Running")
	}
	await(t, "all scripts are to run", func() (bool, string) { // the controller calls a job running before the node has its script
		up, err := filepath.Glob(gate + ".*")
		return len(up) == many, fmt.Sprint(len(up), err)
	})
	c.StopController()
	p.look()
	await(t, "the node is to be not ready", func() (bool, string) { err := p.Ping(t.Context()); return err != nil, "ready" })
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range many {
		awaitPhase(t, p, fmt.Sprintf("p%d", i), "Failed")
	}
	if err := c.StartController(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.look()
	await(t, "the node is to be ready", func() (bool, string) { err := p.Ping(t.Context()); return err == nil, fmt.Sprint(err) })
	for i := range many {
		pod, err := p.GetPod(t.Context(), "ns", fmt.Sprintf("p%d", i))
		if err != nil {
			t.Fatal(err)
		}
		if s := pod.Status.ContainerStatuses; len(s) != 1 || s[0].State.Terminated == nil || s[0].State.Terminated.ExitCode != 3 || s[0].RestartCount != 0 {
			t.Errorf("pod %s: %+v, want exit code 3", pod.Name, s)
		}
		if err := p.DeletePod(t.Context(), pod); err != nil {
			t.Error(err)
		}
	}
	await(t, "all pods are to be gone", func() (bool, string) {
		all, err := p.GetPods(t.Context())
		return err == nil && len(all) == 0, fmt.Sprint(len(all), err)
	})
	left, err := os.ReadDir(filepath.Join(c.Shared, "restart", "node"))
	if err != nil || len(left) > 0 {
		t.Errorf("left on the shared file system: %v, %v", left, err)
	}
}

// TestNodeOfSlurmIsLost checks that the pods of a lost node have failed, with Slurm's reason and no invented
// exit code.
func TestNodeOfSlurmIsLost(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{})
	p, _ := running(t, testConfig(c, "lost"), nil)
	if err := p.CreatePod(t.Context(), shell("a", "sleep 300")); err != nil {
		t.Fatal(err)
	}
	awaitPhase(t, p, "a", "Running")
	pod, err := p.GetPod(t.Context(), "ns", "a")
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	host := p.pods[pod.UID].said.Host
	p.mu.Unlock()
	c.KillNode(host)
	if out, err := c.Run(t.Context(), "scontrol", "update", "NodeName="+host, "State=DOWN", "Reason=gone"); err != nil {
		t.Fatal(out, err)
	}
	p.look()
	awaitPhase(t, p, "a", "Failed")
	pod, _ = p.GetPod(t.Context(), "ns", "a")
	if s := pod.Status; s.Reason != "NodeFail" || s.ContainerStatuses[0].State.Terminated != nil {
		t.Errorf("got %s %+v, want NodeFail and an unknown end", s.Reason, s.ContainerStatuses)
	}
	if err := c.StartNode(host); err != nil {
		t.Fatal(err)
	}
}

// TestAnswerOfSubmissionIsLost checks, in 100 rounds, that a pod has exactly one job after the provider that
// submitted it was gone before the answer came. The next provider has listed all jobs before, so only its
// look-up by name can find the job.
func TestAnswerOfSubmissionIsLost(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{})
	config := func(name, sbatch string) Config {
		config := testConfig(c, "twice")
		config.BinDir, config.Flags = filepath.Join(c.Dir, name), []string{"--hold"}                                    // jobs need not run
		config.FastEvery, config.SlowEvery = metav1.Duration{Duration: time.Hour}, metav1.Duration{Duration: time.Hour} // one list
		if err := os.Mkdir(config.BinDir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, program := range []string{"squeue", "scancel", "sinfo", "srun", "sbatch"} {
			text := "#!/bin/sh\nexec /usr/bin/" + program + " \"$@\"\n"
			if program == "sbatch" {
				text = "#!/bin/sh\n" + sbatch + "\n"
			}
			if err := os.WriteFile(filepath.Join(config.BinDir, program), []byte(text), 0o700); err != nil { //nolint:gosec // it is a program
				t.Fatal(err)
			}
		}
		return config
	}
	done, again := filepath.Join(c.Dir, "done"), filepath.Join(c.Dir, "again")
	first, _ := running(t, config("first", "/usr/bin/sbatch \"$@\" >/dev/null; : > "+done+"; exec sleep 60"), nil) // its answer never comes
	second, _ := running(t, config("second", "echo \"$@\" >> "+again+"; exec /usr/bin/sbatch \"$@\""), nil)
	for _, p := range []*provider{first, second} {
		if err := p.Cache().Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	const rounds = 100
	for i := range rounds {
		pod := shell(fmt.Sprintf("p%d", i), "exit 0")
		pod.Annotations = map[string]string{AnnotationFlags: "--hold"}
		ctx, kill := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() { answer <- first.CreatePod(ctx, pod) }()
		await(t, "the submission", func() (bool, string) { return os.Remove(done) == nil, "not made" })
		kill() // a killed provider takes sbatch with it
		if err := <-answer; err == nil {
			t.Fatal("the answer came")
		}
		if err := second.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if got := second.phase(t, pod.Name); got != "Pending" {
			t.Errorf("%s is %s, want Pending", pod.Name, got)
		}
	}
	if data, _ := os.ReadFile(again); len(data) > 0 {
		t.Errorf("submitted again:\n%s", data)
	}
	out, err := c.Run(t.Context(), "squeue", "--noheader", "--states=all", "--format=%j")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, name := range strings.Fields(out) {
		count[name]++
	}
	if len(count) != rounds {
		t.Errorf("%d pods have jobs, want %d", len(count), rounds)
	}
	for name, n := range count {
		if n != 1 {
			t.Errorf("%s has %d jobs", name, n)
		}
	}
}

// TestPodIsDeletedWithoutAnAnswer checks that the deletion of a pod finds the job of a submission without an
// answer, and that nothing is left.
func TestPodIsDeletedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{})
	config := testConfig(c, "unanswered")
	config.BinDir = filepath.Join(c.Dir, "unanswered")
	if err := os.Mkdir(config.BinDir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"squeue", "scancel", "sinfo", "srun", "sbatch"} {
		text := "#!/bin/sh\nexec /usr/bin/" + name + " \"$@\"\n"
		if name == "sbatch" {
			text = "#!/bin/sh\n/usr/bin/sbatch \"$@\" >/dev/null\necho 'sbatch: error: slurm_receive_msg: Insane message length' >&2\nexit 1\n"
		}
		if err := os.WriteFile(filepath.Join(config.BinDir, name), []byte(text), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	config.FastEvery, config.SlowEvery = metav1.Duration{Duration: time.Hour}, metav1.Duration{Duration: time.Hour} // only the look-up finds it
	p, _ := running(t, config, nil)
	pod := shell("a", "sleep 300")
	if err := p.CreatePod(t.Context(), pod); err == nil {
		t.Fatal("an answer came")
	}
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	await(t, "the job is to end, and the directory to go", func() (bool, string) {
		p.list(t.Context())
		p.look()
		out, err := c.Run(t.Context(), "squeue", "--noheader", "--format=%i")
		_, gone := os.Lstat(p.place.pod(pod.UID))
		return err == nil && strings.TrimSpace(out) == "" && os.IsNotExist(gone), fmt.Sprint(out, err, gone)
	})
	if err := p.place.rewrite(pod.UID, podjob.Bundle{}); !os.IsNotExist(err) {
		t.Errorf("files of a pod that is gone: %v", err)
	}
	await(t, "a second stop is to find nothing", func() (bool, string) { // the next list may have begun before
		p.list(t.Context())
		err := p.DeletePod(t.Context(), pod)
		return errdefs.IsNotFound(err), fmt.Sprint(err)
	})
}

// TestJobIsCancelledBySomebody checks that the pod of a job that another user cancelled has failed and says so.
// Its container has an exit code, and its log is there.
func TestJobIsCancelledBySomebody(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{})
	p, _ := running(t, testConfig(c, "cancelled"), nil)
	if err := p.CreatePod(t.Context(), shell("a", "echo working; trap 'exit 7' TERM; while :; do sleep 0.2; done")); err != nil {
		t.Fatal(err)
	}
	awaitPhase(t, p, "a", "Running")
	if out, err := c.Run(t.Context(), "scancel", "--me"); err != nil {
		t.Fatal(out, err)
	}
	p.look()
	awaitPhase(t, p, "a", "Failed")
	await(t, "the reason is to be told", func() (bool, string) {
		pod, err := p.GetPod(t.Context(), "ns", "a")
		if err != nil {
			return false, err.Error()
		}
		s := pod.Status
		ended := len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].State.Terminated != nil && s.ContainerStatuses[0].State.Terminated.ExitCode == 7
		return s.Reason == "JobCancelled" && strings.Contains(s.Message, "is CANCELLED") && ended, fmt.Sprintf("%+v", s)
	})
	await(t, "the job is to be over", func() (bool, string) {
		out, err := c.Run(t.Context(), "squeue", "--noheader", "--format=%i")
		return err == nil && strings.TrimSpace(out) == "", out
	})
	r, err := p.GetContainerLogs(t.Context(), "ns", "a", "c", api.ContainerLogOpts{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if text, err := io.ReadAll(r); err != nil || !strings.HasPrefix(string(text), "working\n") { // the shell's own message may follow
		t.Errorf("its log has %q, %v", text, err)
	}
}

// TestSecondJobDoesNothing checks that only one job runs the pod if there are two jobs for it after all.
func TestSecondJobDoesNothing(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{})
	p, _ := running(t, testConfig(c, "second"), nil)
	ran := filepath.Join(c.Dir, "ran")
	pod := shell("a", "echo x >> "+ran+"; sleep 2")
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	id := identity{"second", "node", "ns", "a", pod.UID}
	args, err := p.config.submission(pod, id, p.place.pod(pod.UID), p.place.program, p.place.script)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.slurm.submit(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	awaitPhase(t, p, "a", "Succeeded")
	await(t, "both jobs are to end", func() (bool, string) {
		out, err := c.Run(t.Context(), "squeue", "--noheader", "--format=%i")
		return err == nil && strings.TrimSpace(out) == "", out
	})
	if data, err := os.ReadFile(ran); err != nil || string(data) != "x\n" {
		t.Errorf("it ran %q, %v, want once", data, err)
	}
}

// TestRefusals checks that a refusal is reported in Slurm's own words, and that nothing is left.
func TestRefusals(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{})
	config := testConfig(c, "refused")
	config.Partition = "nowhere"
	p, _ := running(t, config, nil)
	err := p.CreatePod(t.Context(), shell("a", "true"))
	if err == nil || !strings.Contains(err.Error(), "nvalid partition") {
		t.Errorf("got %v, want Slurm's words", err)
	}
	if left, err := os.ReadDir(filepath.Join(c.Shared, "refused", "node")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	await(t, "the node is to be not ready", func() (bool, string) {
		err := p.Ping(t.Context())
		return err != nil && strings.Contains(err.Error(), "nowhere"), fmt.Sprint(err)
	})
	down, _ := running(t, func() Config { c := testConfig(c, "down"); c.Partition = "other"; return c }(), nil)
	if out, err := c.Run(t.Context(), "scontrol", "update", "PartitionName=other", "State=DOWN"); err != nil {
		t.Fatal(out, err)
	}
	await(t, "the node is to say that its partition is down", func() (bool, string) {
		down.lookAtPartition(t.Context()) // a request of the node from before may be answered last
		err := down.Ping(t.Context())
		return err != nil && strings.Contains(err.Error(), "is down"), fmt.Sprint(err)
	})
}

// TestSecretsStayInFiles checks that a secret is in no job specification, no script that Slurm keeps, no command
// line, and no file that other users may read.
func TestSecretsStayInFiles(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{})
	canary := fmt.Sprintf("canary-%d", time.Now().UnixNano()) // not in this program, which is in the directory too
	p, _ := running(t, testConfig(c, "secret"), objects{"s": {Data: map[string][]byte{"key": []byte(canary)}}})
	pod := shell("a", "echo shared $(ls -A "+c.Shared+"); cat /secret/key /token/token; ls -ln /secret/..data/; sleep 300")
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "SECRET", Value: canary}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/secret"}, {Name: "t", MountPath: "/token"}}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", DefaultMode: new(int32(0o400))}}},
		{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(int32(0o400)), Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		}}}},
	}
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	awaitPhase(t, p, "a", "Running")
	await(t, "the container is to have its files", func() (bool, string) {
		r, err := p.GetContainerLogs(t.Context(), "ns", "a", "c", api.ContainerLogOpts{})
		if err != nil {
			return false, err.Error()
		}
		defer r.Close()
		var b bytes.Buffer
		_, _ = b.ReadFrom(r)
		return strings.HasPrefix(b.String(), "shared\n") && strings.Contains(b.String(), canary+"token-1"), b.String()
	})
	script := filepath.Join(c.Dir, "script")
	for _, args := range [][]string{{"show", "job", "-d"}, {"show", "step"}, {"write", "batch_script", "1", script}} {
		out, err := c.Run(t.Context(), "scontrol", args...)
		if err != nil || strings.Contains(out, canary) {
			t.Errorf("scontrol %q: %v: it has the secret: %v", args, err, strings.Contains(out, canary))
		}
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if data, _ := os.ReadFile(path); bytes.Contains(data, []byte(canary)) {
			t.Errorf("%s has the secret: %q", path, data)
		}
	}
	found := 0
	err := filepath.WalkDir(c.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // files come and go
		}
		data, _ := os.ReadFile(path)
		if !bytes.Contains(data, []byte(canary)) {
			return nil
		}
		found++
		info, err := d.Info()
		if err != nil || info.Mode().Perm()&0o077 != 0 || !strings.HasPrefix(path, p.place.pod(pod.UID)) {
			t.Errorf("%s has the secret, mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("files with the secret: %d, %v: want those of the pod", found, err)
	}
	p.mu.Lock()
	local := filepath.Dir(p.pods[pod.UID].said.Socket)
	p.mu.Unlock()
	if _, err := os.Stat(filepath.Join("/dev/shm", filepath.Base(local))); err != nil {
		t.Errorf("the job has nothing in memory: %v", err)
	}
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	await(t, "the job is to leave nothing", func() (bool, string) {
		for _, path := range []string{local, filepath.Join("/dev/shm", filepath.Base(local)), p.place.pod(pod.UID)} {
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				return false, fmt.Sprint(path, err)
			}
		}
		return true, ""
	})
}
