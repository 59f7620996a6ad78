// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/slurmtest"
)

// listing returns a provider whose squeue is a script, with the pod "u" of job 7.
func listing(t *testing.T, squeue string) (*provider, *tracked) {
	t.Helper()
	pod := &tracked{id: identity{Cluster: "c", Node: "n", Namespace: "ns", Name: "a", UID: "u"}, job: queued{ID: 7, State: "RUNNING"}}
	p := home(&driver{
		slurm: commandOf(t, "squeue", squeue), place: place{root: t.TempDir()}, settle: settleTime, config: Config{ClusterName: "c"},
		pods: map[types.UID]*tracked{"u": pod},
	})
	p.in = cli.ProviderInput{ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{}}}
	p.in.Node.Name = "n"
	return p, pod
}

// TestJobsOfHiddenPartitionsAreListed checks that squeue is asked for all partitions: otherwise it hides the
// jobs of hidden ones from ordinary users.
func TestJobsOfHiddenPartitionsAreListed(t *testing.T) {
	p, _ := listing(t, `case " $* " in *" --all "*) echo '7|RUNNING|None|vk-u|n1|1|1|virtual-kubelet/c/n/ns/a/u';; esac`)
	if all, err := p.slurm.jobs(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("got %v, %v, want the job", all, err)
	}
}

// TestCommentOfASite checks that a job with a changed comment still belongs to its pod.
func TestCommentOfASite(t *testing.T) {
	p, pod := listing(t, `echo '7|COMPLETED|None|vk-u|n1|1|1|approved by the site'; echo '8|RUNNING|None|vk-other|n1|1|1|'; echo '9|RUNNING|None|vk-u|n1|1|1|virtual-kubelet/c2/n/ns/a/u'`)
	p.list(t.Context())
	if pod.job.State != "COMPLETED" || pod.job.ID != 7 || len(p.pods) != 1 || len(p.doubled) > 0 {
		t.Errorf("job %+v, doubled %v", pod.job, p.doubled)
	}
}

// TestLostNeedsTime checks that a job that is missing from a few lists is not lost yet.
func TestLostNeedsTime(t *testing.T) {
	p, pod := listing(t, "exit 0")
	for range 2 * missingLists {
		p.list(t.Context())
	}
	if pod.job.State != "RUNNING" || p.now(t, pod).Phase == corev1.PodFailed {
		t.Errorf("after a moment the job is %s, the pod %s", pod.job.State, p.now(t, pod).Phase)
	}
	pod.missingAt = pod.missingAt.Add(-settleTime)
	p.list(t.Context())
	if pod.job.State != stateLost || p.now(t, pod).Reason != "JobLost" {
		t.Errorf("after a minute the job is %s, the pod %s", pod.job.State, p.now(t, pod).Reason)
	}
}

// sacct makes a script the accounting command of p.
func sacct(t *testing.T, p *provider, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.slurm.(client).binDir, "sacct"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
}

// TestAccountingKnowsLostJobs checks a job that Slurm has forgotten. If there is an accounting, its entry for
// this very job decides how the job ended. A job that runs there is not lost. While the accounting does not
// answer, no job is lost for a while.
func TestAccountingKnowsLostJobs(t *testing.T) {
	const doubt = ""
	for says, want := range map[string]string{
		"echo '7|NODE_FAIL|1000|vk-u'": "NodeFail", "echo '6|TIMEOUT|1000|vk-u'; echo '7|CANCELLED by 1000|1030|vk-u'": "JobCancelled", "exit 0": "JobLost",
		"echo '7|COMPLETED|1000|train'": "JobLost", "echo '7|COMPLETED|9000|vk-u'": "JobLost", "echo '7|FAILED|1000|vk-u|x'": "JobLost", // other jobs
		"echo '7|TIMEOUT|9|old'; echo '7|NODE_FAIL|1000|vk-u'": "NodeFail",
		"echo '7|RUNNING|1000|vk-u'":                           doubt, "echo '7|PENDING|1000|vk-u'": doubt,
		"echo 'sacct: error: slurm_persist_conn_open: failed to open persistent connection' >&2; exit 1": doubt,
		"echo 'Slurm accounting storage is disabled' >&2; exit 1":                                        "JobLost", "": "JobLost",
		`case " $* " in *" --jobs=7 "*) echo '7|TIMEOUT|1000|vk-u';; esac`: "DeadlineExceeded",
	} {
		p, pod := listing(t, "exit 0")
		pod.job.Submitted = time.Unix(1000, 0)
		if says != "" { // else there is no sacct
			sacct(t, p, says)
		}
		for range missingLists {
			p.list(t.Context())
		}
		if p.now(t, pod).Phase == corev1.PodFailed {
			t.Fatal("it was lost after a moment")
		}
		pod.missingAt = pod.missingAt.Add(-settleTime)
		p.list(t.Context())
		if phase := p.now(t, pod).Phase; p.now(t, pod).Reason != want || (phase == corev1.PodFailed) != (want != doubt) {
			t.Errorf("%q: the pod is %s, %s, want %s", says, phase, p.now(t, pod).Reason, want)
		}
	}
}

// TestDoubtEnds checks that an accounting that does not answer is asked again, but not forever. A job that runs
// there is lost only when its pod is to stop and its time is up. Each lost job is then cancelled by its name,
// and so is a job that has ended according to the accounting.
func TestDoubtEnds(t *testing.T) {
	asks := func(p *provider, pod *tracked) {
		pod.askAt = time.Time{}
		p.list(t.Context())
	}
	of := func(script string) (*provider, *tracked) {
		p, pod := listing(t, "exit 0")
		sacct(t, p, script)
		pod.missing, pod.missingAt = missingLists, time.Now().Add(-settleTime)
		asks(p, pod)
		return p, pod
	}
	p, pod := of("exit 1")
	if pod.job.State != "RUNNING" || !pod.askAt.After(time.Now()) {
		t.Fatalf("job %+v, asked again at %v", pod.job, pod.askAt)
	}
	sacct(t, p, "echo '7|TIMEOUT|1|vk-u'")
	if p.list(t.Context()); pod.job.State != "RUNNING" {
		t.Error("it was asked again at once")
	}
	if asks(p, pod); pod.job.State != "TIMEOUT" {
		t.Errorf("it answers, and job is %s", pod.job.State)
	}
	p, pod = of("exit 1")
	pod.missingAt = pod.missingAt.Add(-accountTime)
	if asks(p, pod); pod.job.State != stateLost {
		t.Errorf("without an answer for long the job is %s", pod.job.State)
	}
	p, pod = of("echo '7|RUNNING|1|vk-u'")
	pod.missingAt = pod.missingAt.Add(-10 * accountTime)
	if asks(p, pod); pod.job.State != "RUNNING" {
		t.Errorf("what runs in the accounting is %s", pod.job.State)
	}
	pod.stop = &stopping{until: time.Now().Add(time.Hour)}
	if p.orders(time.Now()); pod.late() {
		t.Error("its time is up")
	}
	if asks(p, pod); pod.job.State != "RUNNING" {
		t.Errorf("within its grace period the job is %s", pod.job.State)
	}
	p.orders(time.Now().Add(2 * time.Hour))
	if p.list(t.Context()); pod.job.State != stateLost {
		t.Errorf("when its time is up the job is %s", pod.job.State)
	}
	for script, late := range map[string]time.Duration{"echo '7|COMPLETED|1|vk-u'": 0, "echo '7|RUNNING|1|vk-u'": -time.Minute} {
		p, pod = of(script)
		pod.stop = &stopping{until: time.Now().Add(late), late: late < 0}
		asks(p, pod)
		if due := p.orders(time.Now()); len(due) != 1 || fmt.Sprint(due[0].lost) != "[u]" {
			t.Errorf("%s: orders %+v, want one for the name of the job", script, due)
		}
		pod.stop.ended = true
		if due := p.orders(time.Now().Add(time.Hour)); len(due) != 0 {
			t.Errorf("%s: it was cancelled, and is again: %+v", script, due)
		}
	}
}

// TestLostJobIsCancelled checks a job that Slurm no longer shows, although it may still run. The job is cancelled by the name of its
// pod until that succeeds. Only then are its files removed.
func TestLostJobIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := home(&driver{place: place{root: t.TempDir()}, pods: stopped(stateLost, 1, time.Now().Add(time.Hour))})
		p.forget(t.Context())
		for range 2 {
			due := p.orders(time.Now())
			if len(due) != 1 || len(due[0].ids) > 0 || fmt.Sprint(due[0].lost) != "[LOST-0]" {
				t.Fatalf("orders %+v, want one for the name of the job", due)
			}
			if len(p.pods) == 0 {
				t.Fatal("the files went before")
			}
			if due[0].stops[0].tries == 2 {
				due[0].stops[0].ended = true
			}
			time.Sleep(askRunning)
		}
		time.Sleep(time.Hour)
		if due := p.orders(time.Now()); len(due) > 0 {
			t.Errorf("cancelled again: %+v", due)
		}
		if p.forget(t.Context()); len(p.pods) > 0 {
			t.Error("the pod stays")
		}
	})
}

// TestHiddenJobEnds checks on a real Slurm that a job missing from all lists is cancelled, and its pod removed.
func TestHiddenJobEnds(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{})
	config := testConfig(c, "hidden")
	config.BinDir = filepath.Join(c.Dir, "hidden")
	if err := os.Mkdir(config.BinDir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"squeue", "scancel", "sinfo", "srun", "sbatch"} {
		text := "#!/bin/sh\nexec /usr/bin/" + name + " \"$@\"\n"
		if name == "squeue" {
			text = "#!/bin/sh\nexit 0\n"
		}
		if err := os.WriteFile(filepath.Join(config.BinDir, name), []byte(text), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	p, _ := running(t, config, nil)
	pod := shell("a", "sleep 300")
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	awaitPhase(t, p, "a", "Failed")
	if out, err := c.Run(t.Context(), "squeue", "--noheader", "--format=%T"); err != nil || strings.TrimSpace(out) != "RUNNING" {
		t.Fatalf("the job is %q, %v, want it to run", out, err)
	}
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	await(t, "the pod is to go", func() (bool, string) { got := p.phase(t, "a"); return strings.Contains(got, "there is no pod"), got })
	await(t, "the job is to end", func() (bool, string) {
		out, err := c.Run(t.Context(), "squeue", "--noheader", "--format=%i %T")
		return err == nil && strings.TrimSpace(out) == "", out
	})
}
