// SPDX-License-Identifier: Apache-2.0

package podjob

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestStatusIsWrittenWhenItIsNew: unchanged statuses are not written, because the node polls more often after each new status.
func TestStatusIsWrittenWhenItIsNew(t *testing.T) {
	host := &memory{}
	s := &supervisor{config: Config{Host: host}, status: Status{Job: "7"}}
	for _, step := range []struct {
		phase corev1.PodPhase
		want  int
	}{{"", 1}, {"", 1}, {corev1.PodRunning, 2}, {corev1.PodRunning, 2}} {
		s.status.Pod.Phase = step.phase
		if err := s.write(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, last := len(host.said), host.last(); n != step.want || last.Pod.Phase != step.phase || last.Job != "7" {
			t.Errorf("%q: %d were written, the last one %+v, want %d", step.phase, n, last, step.want)
		}
	}
}

// TestFailedWriteEndsNoPod: while the host fails, the pod continues, and its end is written when the host works again.
func TestFailedWriteEndsNoPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &memory{away: errAway}
		s := &supervisor{config: Config{Host: host, LookEvery: defaultLookEvery}, changed: make(chan struct{}, 1)}
		is := func(phase corev1.PodPhase) {
			s.mu.Lock()
			s.last = &corev1.Pod{Status: corev1.PodStatus{Phase: phase}}
			s.mu.Unlock()
			s.changed <- struct{}{}
			time.Sleep(time.Minute)
		}
		left := make(chan error, 1)
		go func() { left <- s.follow(t.Context(), nil) }()
		is(corev1.PodRunning)
		is(corev1.PodSucceeded)
		select {
		case err := <-left:
			t.Fatalf("the pod is left alone: %v", err)
		default:
		}
		host.setAway(nil)
		if err := <-left; err != nil {
			t.Error(err)
		}
		if said := host.last(); !said.Ended || said.Pod.Phase != corev1.PodSucceeded {
			t.Errorf("it says %+v", said)
		}
	})
}

var errAway = errors.New("away")

// TestLastWriteIsNotTriedForEver: a job ends at some time even if the last status cannot be written.
func TestLastWriteIsNotTriedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &supervisor{config: Config{Host: &memory{away: errAway}, LookEvery: defaultLookEvery}, changed: make(chan struct{}, 1)}
		s.last = &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}
		s.changed <- struct{}{}
		began := time.Now()
		if err := s.follow(t.Context(), nil); !errors.Is(err, errAway) {
			t.Errorf("got %v, want why it could not be written", err)
		}
		if took := time.Since(began); took < lastWrite || took > lastWrite+2*defaultLookEvery {
			t.Errorf("it took %v", took)
		}
	})
}

// TestLogIsOpenedAgain: output of a container is logged again when there is disk space.
func TestLogIsOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c", "0.log")
	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	away := filepath.Dir(path) + "2"
	if err := os.Rename(filepath.Dir(path), away); err != nil {
		t.Fatal(err)
	}
	l.size = maxLog
	l.write([]byte("lost\n"))
	if err := os.Rename(away, filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	l.write([]byte("kept\n"))
	if data, err := os.ReadFile(path); string(data) != "kept\n" {
		t.Errorf("the log has %q, %v", data, err)
	}
	l.close()
	l.write([]byte("late\n"))
	if data, _ := os.ReadFile(path); string(data) != "kept\n" {
		t.Errorf("a log that was closed has %q", data)
	}
}

// TestRotatedLogsGoWithTheirRun: the rotated files of a run whose log was removed are removed when the next run begins.
func TestRotatedLogsGoWithTheirRun(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"0.log.1", "0.log.4", "1.log", "1.log.1", "1.log.2"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := openLog(filepath.Join(dir, "2.log"))
	if err != nil {
		t.Fatal(err)
	}
	l.close()
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if want := []string{"1.log", "1.log.1", "1.log.2", "2.log"}; !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
}
