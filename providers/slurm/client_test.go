// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/jsonfile"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// commandOf returns a client whose command of that name is a script.
func commandOf(t *testing.T, name, script string) client {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return client{binDir: dir}
}

// TestStepIsAskedToEnd checks that a step is asked to end: killing srun leaves its step running.
func TestStepIsAskedToEnd(t *testing.T) {
	begun, asked := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "asked")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := commandOf(t, "srun", "trap ': > "+asked+"; exit 0' TERM; : > "+begun+"; while :; do sleep 0.1; done").step(ctx)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "the step", func() (bool, string) { _, err := os.Stat(begun); return err == nil, "not begun" })
	cancel()
	_ = cmd.Wait()
	if _, err := os.Stat(asked); err != nil {
		t.Error("it was killed without being asked")
	}
}

// TestWhatRefusesASubmission checks the messages of sbatch: some prove that no job was made. After any other
// message, there may be a job.
func TestWhatRefusesASubmission(t *testing.T) {
	const failed = "Batch job submission failed: "
	for said, want := range map[string]bool{
		"invalid partition specified: nowhere " + failed + "Invalid partition name specified": false,
		failed + "Requested node configuration is not available":                              false,
		failed + "Job violates accounting/QOS policy (job submit limit, user's size)":         false,
		failed + "User's group not permitted to use this partition":                           false,
		"unrecognized option '--nonsense'":                                                    false,
		failed + "Socket timed out on send/recv operation":                                    true,
		"invalid thing " + failed + "Unexpected message received":                             true,
		"slurm_receive_msg: Insane message length":                                            true,
		"exit status 1": true,
	} {
		if got := unclear(&refusedError{"sbatch", said}); got != want {
			t.Errorf("%q: unclear %v, want %v", said, got, want)
		}
	}
	if !unclear(errors.New("no answer")) {
		t.Error("no answer is clear")
	}
}

// TestUnreadableFilesAreNoAnswer checks that unreadable files of a pod are an error, and not an answer about
// which pods exist.
func TestUnreadableFilesAreNoAnswer(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	p := home(&driver{
		slurm: commandOf(t, "squeue", "exit 0"), place: place{root: root}, pods: map[types.UID]*tracked{},
	})
	check := func(what string, want bool) {
		t.Helper()
		p.list(t.Context())
		listed := p.Cache().Synced()
		if listed != want || p.AnswersForAllPods() != want {
			t.Errorf("%s: listed %v, answers %v, want %v", what, listed, p.AnswersForAllPods(), want)
		}
	}
	check("no directory", false)
	bundle := filepath.Join(root, "u", job.BundleFile)
	if err := errors.Join(os.MkdirAll(bundle, 0o700), p.place.submitted("u", 1)); err != nil { // a directory in place of the file makes reading fail
		t.Fatal(err)
	}
	check("a file that cannot be read", false)
	if err := os.Remove(bundle); err != nil {
		t.Fatal(err)
	}
	check("no file", true)
}

// TestDamagedFileIsOnePod checks that a permanently damaged file hides no other pod, and that its own pod is
// known by the comment of its job.
func TestDamagedFileIsOnePod(t *testing.T) {
	for _, damaged := range []string{"", "{", "{}"} {
		p, _ := listing(t, "echo '7|RUNNING|None|vk-u|n1|1|1|virtual-kubelet/c/n/ns/a/u'")
		p.pods = map[types.UID]*tracked{}
		for _, uid := range []types.UID{"u", "old"} {
			dir := p.place.pod(uid)
			err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, job.BundleFile), []byte(damaged), 0o600), p.place.submitted(uid, 1),
				jsonfile.Write(filepath.Join(dir, job.StatusFile), podjob.Status{Job: "7", Pod: corev1.PodStatus{Phase: corev1.PodRunning}}))
			if err != nil {
				t.Fatal(err)
			}
		}
		p.list(t.Context())
		all, err := p.GetPods(t.Context())
		if err != nil || len(all) != 1 || !p.AnswersForAllPods() {
			t.Fatalf("%q: pods %v, %v", damaged, all, err)
		}
		if pod := all[0]; pod.Namespace != "ns" || pod.Name != "a" || pod.UID != "u" || pod.Status.Phase != corev1.PodRunning {
			t.Errorf("%q: pod %s/%s with UID %q is %s", damaged, pod.Namespace, pod.Name, pod.UID, pod.Status.Phase)
		}
	}
}

// TestSecretsOfNobody checks that a provider removes, at its start, the files of a submission that had no answer
// an hour ago or earlier, and nothing else.
func TestSecretsOfNobody(t *testing.T) {
	p, _ := listing(t, "echo '7|PENDING|None|vk-queued|n1|1|1|virtual-kubelet/c/n/ns/a/queued'")
	p.pods = map[types.UID]*tracked{}
	old := time.Now().Add(-2 * unansweredTime)
	for uid, file := range map[types.UID]string{"queued": "", "young": "", "nobody": "", "asked": submittedFile, "told": job.StatusFile, "claimed": job.ClaimFile} {
		dir := p.place.pod(uid)
		err := errors.Join(os.Mkdir(dir, 0o700), p.place.rewrite(uid, podjob.Bundle{Pod: &corev1.Pod{}}))
		if file != "" {
			err = errors.Join(err, jsonfile.Write(filepath.Join(dir, file), podjob.Status{}))
		}
		if uid != "young" {
			err = errors.Join(err, os.Chtimes(dir, old, old))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p.list(t.Context())
	left, err := os.ReadDir(p.place.root)
	if err != nil || len(left) != 5 {
		t.Errorf("left %v, %v, want all but one", left, err)
	}
	if _, err := os.Lstat(p.place.pod("nobody")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the files of nobody: %v", err)
	}
}
