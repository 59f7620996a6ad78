// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/jsonfile"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// stopped returns n pods that are to stop until the given time, whose jobs have the state.
func stopped(state string, n int, until time.Time) map[types.UID]*tracked {
	all := map[types.UID]*tracked{}
	for i := range n {
		uid := types.UID(fmt.Sprintf("%s-%d", state, i))
		t := &tracked{id: identity{UID: uid}, job: queued{ID: len(state)*10000 + i, State: state}, stop: &stopping{until: until}}
		if state == "RUNNING" {
			t.said = &podjob.Status{}
		}
		all[uid] = t
	}
	return all
}

// TestJobsAreToldTogether checks that a few commands stop many pods. No caller waits for a hanging command, and
// each pod is told only once.
func TestJobsAreToldTogether(t *testing.T) {
	asked, gate := filepath.Join(t.TempDir(), "asked"), filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	p := home(&driver{
		slurm: commandOf(t, "scancel", "read x < "+gate+"; echo $(echo $* | tr ' ' '\\n' | grep -c '^[0-9]') $1 >> "+asked), pods: stopped("RUNNING", 600, time.Now().Add(time.Hour)),
		doubled: []int{7},
	})
	for uid, pod := range stopped("PENDING", 300, time.Now().Add(time.Hour)) {
		p.pods[uid] = pod
	}
	var running sync.WaitGroup
	p.tell(t.Context(), &running) // the commands wait at the gate, but tell does not
	p.tell(t.Context(), &running) // while commands run, no further job is told
	open, err := os.OpenFile(gate, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if _, err := open.WriteString(strings.Repeat("\n", 4)); err != nil {
		t.Fatal(err)
	}
	running.Wait()
	data, _ := os.ReadFile(asked)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	slices.Sort(lines)
	if want := []string{"1 7", "100 --signal=USR1", "300 --state=PENDING", "500 --signal=USR1"}; !slices.Equal(lines, want) {
		t.Errorf("commands %q, want %q", lines, want)
	}
	for _, o := range p.orders(time.Now().Add(10 * time.Minute)) {
		if slices.Contains(o.flags, "--batch") {
			t.Errorf("%d jobs that know are told again", len(o.ids))
		}
	}
	if due := p.orders(time.Now().Add(2 * time.Hour)); len(due) != 1 || len(due[0].flags) > 0 || len(due[0].ids) != 900 {
		t.Errorf("when the time is up: %+v, want 900 cancelled", due)
	}
}

// TestWaitsGrow checks that the retries to tell a job have growing intervals, and that the job is cancelled when
// its time is up.
func TestWaitsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := home(&driver{pods: stopped("RUNNING", 1, time.Now().Add(10*time.Minute))})
		began, signals, kills := time.Now(), 0, []time.Duration{}
		for time.Since(began) < 15*time.Minute {
			for _, o := range p.orders(time.Now()) {
				if len(o.flags) > 0 {
					signals++
				} else {
					kills = append(kills, time.Since(began))
				}
			}
			time.Sleep(time.Second)
		}
		if signals < 8 || signals > 14 {
			t.Errorf("told %d times in 10 minutes, want 5 s, 10 s, … and then each minute", signals)
		}
		if len(kills) < 5 || len(kills) > 10 || kills[0] > 10*time.Minute+2*time.Second {
			t.Errorf("cancelled at %v", kills)
		}
	})
}

// TestHangingFilesHoldUpNobody checks that the known statuses are reported while the shared file system hangs.
func TestHangingFilesHoldUpNobody(t *testing.T) {
	p := listed(t, &driver{place: place{root: t.TempDir()}, pods: stopped("RUNNING", 1, time.Now())})
	path := filepath.Join(p.place.pod("RUNNING-0"), job.StatusFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil { // opening the FIFO blocks
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() { p.readFiles(t.Context()); close(read) }()
	var gate *os.File
	await(t, "the file is to be read", func() (bool, string) {
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return false, err.Error() // no process has it open
		}
		gate = f
		return true, ""
	})
	told := make(chan int, 1)
	go func() { all, _ := p.GetPods(t.Context()); told <- len(all) }()
	select {
	case n := <-told:
		if n != 1 {
			t.Errorf("%d pods", n)
		}
	case <-time.After(10 * time.Second):
		t.Error("the pods are not told")
	}
	_ = gate.Close()
	<-read
}

// TestUpdateBesideAStream replaces a pod during a connection with it, for the race detector.
func TestUpdateBesideAStream(t *testing.T) {
	p := listed(t, &driver{
		in:    cli.ProviderInput{ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{}}},
		place: place{root: t.TempDir()}, pods: map[types.UID]*tracked{},
	})
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.UID = "ns", "a", "u"
	p.pods["u"] = &tracked{id: identity{Namespace: "ns", Name: "a", UID: "u"}}
	p.refresh(p.pods["u"])
	p.report(t.Context())
	var both sync.WaitGroup
	both.Go(func() {
		for range 100 {
			_ = p.UpdatePod(t.Context(), pod.DeepCopy()) // its directory is not there
		}
	})
	for range 100 {
		if err := p.RunInContainer(t.Context(), "ns", "a", "none", nil, silent{}); !errdefs.IsNotFound(err) {
			t.Error(err)
		}
	}
	both.Wait()
}

// TestGraceDoesNotBeginAnew checks that the grace period of a stopping pod does not restart, however often it is
// told, and not after a restart of the provider either.
func TestGraceDoesNotBeginAnew(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u", DeletionGracePeriodSeconds: new(int64(3600))}}
	of := func() *driver {
		return &driver{in: cli.ProviderInput{ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{}}}, pods: map[types.UID]*tracked{}, settle: time.Minute}
	}
	p := listed(t, of())
	p.place.root = filepath.Join(t.TempDir(), "full")
	if err := os.MkdirAll(filepath.Dir(p.place.pod("u")), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.place.pod("u"), nil, 0o600); err != nil { // no file can be written below a regular file
		t.Fatal(err)
	}
	p.pods["u"] = &tracked{id: identity{Namespace: "ns", Name: "a", UID: "u"}, job: queued{ID: 1, State: "RUNNING"}, said: &podjob.Status{}}
	p.refresh(p.pods["u"])
	p.report(t.Context())
	if err := p.DeletePod(t.Context(), pod); err == nil {
		t.Fatal("the order was written")
	}
	first := time.Now().Add(time.Hour + endTime - 30*time.Minute)
	p.pods["u"].stop.until = first // half of the grace period has passed
	if err := errors.Join(os.Remove(p.place.pod("u")), os.Mkdir(p.place.pod("u"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if got := p.pods["u"].stop.until; !got.Equal(first) {
		t.Errorf("it has until %v, want %v", got, first)
	}
	var said podjob.Stop
	if err := jsonfile.Read(filepath.Join(p.place.pod("u"), job.StopFile), &said); err != nil || said.GraceSeconds != 1800 {
		t.Errorf("the job is told %+v, %v", said, err)
	}
	again := home(of())
	again.place = p.place
	if err := errors.Join(p.place.rewrite("u", podjob.Bundle{Pod: pod}), p.place.submitted("u", 1), again.adopt(t.Context(), nil)); err != nil || again.pods["u"] == nil || !again.pods["u"].stop.until.Equal(first) {
		t.Errorf("after a restart: %+v, %v", again.pods["u"], err)
	}
	sooner := pod.DeepCopy()
	sooner.DeletionGracePeriodSeconds = new(int64(0))
	if err := p.DeletePod(t.Context(), sooner); err != nil || time.Until(p.pods["u"].stop.until) > endTime {
		t.Errorf("less grace: until %v, %v", p.pods["u"].stop.until, err)
	}
}
