// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/jsonfile"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// TestSharedDirIsAway checks that unreadable files do not count as missing: a pod that ends meanwhile has its
// true status once the files are readable again.
func TestSharedDirIsAway(t *testing.T) {
	for name, take := range map[string]func(root, path string) (back func() error, err error){
		"not mounted": func(root, _ string) (func() error, error) {
			root = filepath.Dir(root)
			back := func() error { return errors.Join(os.RemoveAll(root), os.Rename(root+"2", root)) }
			return back, errors.Join(os.Rename(root, root+"2"), os.Mkdir(root, 0o700))
		},
		"an error": func(_, path string) (func() error, error) {
			back := func() error { return errors.Join(os.Remove(path), os.Rename(path+"2", path)) }
			return back, errors.Join(os.Rename(path, path+"2"), os.Mkdir(path, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, pod := listing(t, "echo '7|COMPLETED|None|vk-u|n1|1|1|virtual-kubelet/c/n/ns/a/u'")
			p.place.root = filepath.Join(t.TempDir(), "shared", "root")
			path := filepath.Join(p.place.pod("u"), job.StatusFile)
			write := func(ended bool, phase corev1.PodPhase) error {
				return jsonfile.Write(path, podjob.Status{Job: "7", Ended: ended, Pod: corev1.PodStatus{Phase: phase}})
			}
			if err := errors.Join(os.MkdirAll(p.place.pod("u"), 0o700), write(false, corev1.PodRunning)); err != nil {
				t.Fatal(err)
			}
			p.list(t.Context())
			pod.job.State = "RUNNING"
			p.readFiles(t.Context())
			if !p.AnswersForAllPods() || p.Ping(t.Context()) != nil {
				t.Fatalf("before: %v", p.Ping(t.Context()))
			}
			if err := write(true, corev1.PodSucceeded); err != nil {
				t.Fatal(err)
			}
			back, err := take(p.place.root, path)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				p.list(t.Context())
				pod.overAt = time.Now().Add(-time.Hour)
				p.readFiles(t.Context())
			}
			if p.now(t, pod).Phase != corev1.PodRunning || p.AnswersForAllPods() || p.Ping(t.Context()) == nil {
				t.Errorf("away: the pod is %s, Ping %v", p.now(t, pod).Phase, p.Ping(t.Context()))
			}
			if err := back(); err != nil {
				t.Fatal(err)
			}
			p.readFiles(t.Context())
			if p.now(t, pod).Phase != corev1.PodSucceeded || !p.AnswersForAllPods() || p.Ping(t.Context()) != nil {
				t.Errorf("back: the pod is %s, Ping %v", p.now(t, pod).Phase, p.Ping(t.Context()))
			}
		})
	}
}

// TestStartWithoutSharedDir checks that a provider that finds its jobs but an empty directory does not report
// its pods as missing.
func TestStartWithoutSharedDir(t *testing.T) {
	p, _ := listing(t, "echo '7|RUNNING|None|vk-u|n1|1|1|virtual-kubelet/c/n/ns/a/u'")
	p.pods = map[types.UID]*tracked{}
	for range 2 {
		if p.list(t.Context()); p.AnswersForAllPods() {
			t.Fatal("it answers for all pods")
		}
	}
	if err := errors.Join(os.Mkdir(p.place.pod("u"), 0o700), p.place.rewrite("u", podjob.Bundle{Pod: &corev1.Pod{}})); err != nil {
		t.Fatal(err)
	}
	if p.list(t.Context()); !p.AnswersForAllPods() || p.pods["u"] == nil {
		t.Errorf("the files are there: %v, %v", p.listErr, p.pods)
	}
	again, _ := listing(t, "echo '8|PENDING|None|vk-u2|n1|1|1|virtual-kubelet/c/n/ns/a/u2'")
	again.pods, again.place = map[types.UID]*tracked{}, p.place
	if again.list(t.Context()); !again.AnswersForAllPods() {
		t.Errorf("a job without files in the directory of before: %v", again.listErr)
	}
}

// TestHangingFilesHoldUpNoKill checks that Slurm is still asked while the files hang: its states are reported,
// and jobs whose time is up are cancelled. After a while the node reports the problem.
func TestHangingFilesHoldUpNoKill(t *testing.T) {
	cancelled := filepath.Join(t.TempDir(), "cancelled")
	p, pod := listing(t, "echo '7|RUNNING|None|vk-u|n1|1|1|virtual-kubelet/c/n/ns/a/u'")
	for name, text := range map[string]string{"sinfo": "echo 'n1|8|4000|idle|up|main*|(null)'", "scancel": "echo \"$@\" > " + cancelled} {
		if err := os.WriteFile(filepath.Join(p.slurm.(client).binDir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	p.config.FastEvery.Duration, p.config.SlowEvery.Duration = 100*time.Millisecond, 100*time.Millisecond
	path := filepath.Join(p.place.pod("u"), job.StatusFile)
	if err := errors.Join(os.Mkdir(p.place.pod("u"), 0o700), syscall.Mkfifo(path, 0o600)); err != nil { // opening the FIFO blocks
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.RunInBackground(ctx) }()
	defer func() {
		cancel()
		await(t, "it is to end", func() (bool, string) {
			if f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
				_ = f.Close()
			}
			select {
			case <-ended:
				return true, ""
			default:
				return false, "it runs"
			}
		})
	}()
	if err := p.Cache().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	pod.stop = &stopping{until: time.Now().Add(-time.Minute)}
	p.mu.Unlock()
	await(t, "the job is to be cancelled", func() (bool, string) { data, _ := os.ReadFile(cancelled); return string(data) == "7\n", string(data) })
	if err := p.Ping(t.Context()); err != nil {
		t.Errorf("after a moment: %v", err)
	}
	p.mu.Lock()
	p.readAt = p.readAt.Add(-2 * stuckTime)
	p.mu.Unlock()
	p.tellHealth() // the health is reported from time to time
	if err := p.Ping(t.Context()); err == nil || p.AnswersForAllPods() {
		t.Errorf("after minutes: %v, it answers %v", err, p.AnswersForAllPods())
	}
}
