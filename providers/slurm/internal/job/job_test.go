// SPDX-License-Identifier: Apache-2.0

//go:build linux

package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
)

func TestOneJobTakesAPod(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SLURM_JOB_ID", "1")
	if err := claim(dir); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLURM_JOB_ID", "2")
	if err := claim(dir); err == nil || !strings.Contains(err.Error(), "job 1 runs this pod") {
		t.Errorf("the second job: %v", err)
	}
}

// TestContainersEndWithTheSignalOfSlurm: a pod whose containers end by the signal of Slurm before the supervisor has taken its own has not ended by itself.
func TestContainersEndWithTheSignalOfSlurm(t *testing.T) {
	dir := t.TempDir()
	pods, err := podruntime.New(podruntime.Config{
		Runtime: newRuntime(dir, ""), Images: images{dir}, Node: &corev1.Node{}, Recorder: &record.FakeRecorder{}, Root: filepath.Join(dir, "pods"), LogRoot: dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = pods.RunInBackground(ctx) })
	defer running.Wait()
	defer cancel()
	for i := range 40 {
		phase := []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded}[i%2]
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u"}}
		s := &supervisor{dir: dir, bundle: &bundle{Bundle: Bundle{Pod: pod}}, pods: pods, changed: make(chan struct{}, 1), last: pod.DeepCopy()}
		s.last.Status.Phase = phase
		signals := make(chan os.Signal, 1)
		s.changed <- struct{}{}
		signals <- syscall.SIGTERM
		if err := s.follow(ctx, signals); err != nil {
			t.Fatal(err)
		}
		var said Status
		if err := ReadJSON(filepath.Join(dir, StatusFile), &said); err != nil || !said.Ended || said.Cause != "SIGTERM" || said.Pod.Phase != phase {
			t.Fatalf("it says %+v, %v, want the signal as the cause", said, err)
		}
	}
}

// TestEndWaitsForTheSignalOfSlurm: a pod that ended may have its supervisor's signal a moment later.
func TestEndWaitsForTheSignalOfSlurm(t *testing.T) {
	for after, want := range map[time.Duration]os.Signal{signalSpread - 1: syscall.SIGTERM, signalSpread + 1: nil} {
		synctest.Test(t, func(t *testing.T) {
			signals := make(chan os.Signal, 1)
			began := time.Now()
			time.AfterFunc(after, func() { signals <- syscall.SIGTERM })
			if got := lateSignal(signals); got != want || time.Since(began) > signalSpread {
				t.Errorf("signal after %v: got %v after %v, want %v", after, got, time.Since(began), want)
			}
		})
	}
}

func TestFrames(t *testing.T) {
	var b bytes.Buffer
	f := NewFrames(&b)
	long := bytes.Repeat([]byte{0, '\n', 255}, maxFrame/2)
	if err := errors.Join(f.Send(FrameInput, long), f.Send(FrameInputEnd, nil)); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
		t.Error("the last frame ends with no line: Slurm would keep it")
	}
	var got []byte
	for {
		kind, data, err := ReadFrame(&b)
		if err != nil || kind == FrameInputEnd {
			if err != nil || b.Len() > 0 {
				t.Errorf("the end: %v, %d bytes left", err, b.Len())
			}
			break
		}
		got = append(got, data...)
	}
	if !bytes.Equal(got, long) {
		t.Errorf("got %d bytes, want the %d that were sent", len(got), len(long))
	}
	if _, _, err := ReadFrame(strings.NewReader("srun: error: x")); err == nil {
		t.Error("a text was read as a frame")
	}
	if _, _, err := ReadFrame(strings.NewReader("")); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
}

func TestLogKeepsTheNewest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c", "0.log")
	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("x", 8000)
	var in strings.Builder
	for i := range 8000 {
		fmt.Fprintf(&in, "%d %s\n", i, line)
	}
	l.copy("stdout", strings.NewReader(in.String()), func([]byte) {})
	l.close()
	files, _ := filepath.Glob(path + "*")
	if len(files) != KeptLogs+1 {
		t.Errorf("files: %q, want %d", files, KeptLogs+1)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Size() > maxLog || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f, info, err)
		}
	}
	if data, _ := os.ReadFile(path); !bytes.Contains(data, []byte(" stdout F 7999 ")) {
		t.Error("the last line is not in the newest file")
	}
}

func TestBundleAnswers(t *testing.T) {
	dir := t.TempDir()
	write := func(token string) {
		t.Helper()
		b := Bundle{Tokens: map[string]Token{"/0": {Token: token}}, Containers: map[string]*corev1.Container{"c": {Name: "c", Env: []corev1.EnvVar{
			{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		}}}}
		if err := WriteJSON(filepath.Join(dir, BundleFile), b); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	b, err := openBundle(dir)
	if err != nil {
		t.Fatal(err)
	}
	b.address = "192.0.2.1"
	write("new")
	ctx := context.Background()
	if got, err := b.Token(ctx, nil, &corev1.ServiceAccountTokenProjection{}); err != nil || got.Token != "new" {
		t.Errorf("token %q, %v, want the renewed one", got.Token, err)
	}
	if _, err := b.Secret(ctx, nil, "none"); !apierrors.IsNotFound(err) {
		t.Errorf("a secret that is not there: %v", err)
	}
	if c, err := b.Container(ctx, nil, "c"); err != nil || c.Env[0].Value != "192.0.2.1" {
		t.Errorf("container %+v, %v, want the address of the job's node", c, err)
	}
}

func TestEnvironmentHasOneOfEach(t *testing.T) {
	t.Setenv("SLURM_JOB_ID", "7")
	t.Setenv("AWS_SECRET", "no")
	t.Setenv("SLURM_JWT", "no")
	env := environment(&runtimeapi.ContainerConfig{Envs: []*runtimeapi.KeyValue{{Key: "SLURM_JOB_ID", Value: []byte("mine")}, {Key: "A", Value: []byte("1")}, {Key: "A", Value: []byte("2")}}}, nil)
	text := strings.Join(env, "\n")
	if strings.Contains(text, "AWS_SECRET") || strings.Contains(text, "SLURM_JWT") || strings.Count(text, "SLURM_JOB_ID=mine") != 1 || strings.Contains(text, "=7") || !strings.HasSuffix(text, "A=2") {
		t.Errorf("environment %q", env)
	}
}

// TestWritersDoNotMeet: of writers at once each writes a whole file, and none fails.
func TestWritersDoNotMeet(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for range 100 {
				if err := WriteJSON(path, strings.Repeat("x", 1000*(i+1))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	var got string
	left, _ := os.ReadDir(dir)
	if err := ReadJSON(path, &got); err != nil || len(got)%1000 != 0 || len(left) != 1 {
		t.Errorf("%d bytes, %v, left %v", len(got), err, left)
	}
}
