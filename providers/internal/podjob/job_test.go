// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podjob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
)

// memory is a host with its files in memory.
type memory struct {
	mu     sync.Mutex
	bundle Bundle   // guarded by mu
	said   []Status // guarded by mu: all written statuses
	away   error    // guarded by mu: the error of all reads and writes
}

func (m *memory) Claim(context.Context) error { return nil }

func (m *memory) Bundle(context.Context) (Bundle, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bundle, m.away
}

func (m *memory) WriteStatus(_ context.Context, s Status) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away == nil {
		m.said = append(m.said, s)
	}
	return m.away
}

func (m *memory) StopOrder(context.Context) (*Stop, error) { return nil, nil }

// last returns the last written status.
func (m *memory) last() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.said) == 0 {
		return Status{}
	}
	return m.said[len(m.said)-1]
}

func (m *memory) setAway(err error) {
	m.mu.Lock()
	m.away = err
	m.mu.Unlock()
}

// TestContainersEndWithTheSignalOfTheJob: if the containers of a pod end by the job's signal before the supervisor handles its own signal, the pod
// did not end by itself.
func TestContainersEndWithTheSignalOfTheJob(t *testing.T) {
	dir := t.TempDir()
	pods, err := podruntime.New(podruntime.Config{
		Runtime: newRuntime(dir, ""), Images: images{dir}, Node: &corev1.Node{}, Recorder: noEvents{}, Root: filepath.Join(dir, "pods"), LogRoot: dir,
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
		host := &memory{}
		s := &supervisor{config: Config{Host: host, LookEvery: defaultLookEvery, KillGrace: defaultKillGrace}, bundle: &bundle{Bundle: Bundle{Pod: pod}}, pods: pods, changed: make(chan struct{}, 1), last: pod.DeepCopy()}
		s.last.Status.Phase = phase
		signals := make(chan os.Signal, 1)
		s.changed <- struct{}{}
		signals <- syscall.SIGTERM
		if err := s.follow(ctx, signals); err != nil {
			t.Fatal(err)
		}
		if said := host.last(); !said.Ended || said.Cause != "SIGTERM" || said.Pod.Phase != phase {
			t.Fatalf("it says %+v, want the signal as the cause", said)
		}
	}
}

// TestEndWaitsForTheSignalOfTheJob: the supervisor's signal may arrive a moment after the end of the pod.
func TestEndWaitsForTheSignalOfTheJob(t *testing.T) {
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
		t.Error("the last frame ends with no line: what carries it may keep it")
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
	if _, _, err := ReadFrame(strings.NewReader("ssh: error: x")); err == nil {
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
	host := &memory{bundle: Bundle{Tokens: map[string]Token{"/0": {Token: "old"}}, Containers: map[string]*corev1.Container{"c": {Name: "c", Env: []corev1.EnvVar{
		{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
	}}}}}
	ctx := t.Context()
	b, err := openBundle(ctx, host)
	if err != nil {
		t.Fatal(err)
	}
	b.address = "192.0.2.1"
	host.bundle = Bundle{Tokens: map[string]Token{"/0": {Token: "new"}}}
	for range 2 { // the second time with the earlier objects, because reads fail
		if got, err := b.Token(ctx, nil, &corev1.ServiceAccountTokenProjection{}); err != nil || got.Token != "new" {
			t.Errorf("token %q, %v, want the renewed one", got.Token, err)
		}
		host.setAway(errors.New("away"))
	}
	if _, err := b.Secret(ctx, nil, "none"); !apierrors.IsNotFound(err) {
		t.Errorf("a secret that is not there: %v", err)
	}
	if c, err := b.Container(ctx, nil, "c"); err != nil || c.Env[0].Value != "192.0.2.1" {
		t.Errorf("container %+v, %v, want the address of the machine", c, err)
	}
}

// TestEnvironmentHasOneOfEach: a container has the variables that its host keeps and the variables of devices, each once, and no other variables of
// the machine.
func TestEnvironmentHasOneOfEach(t *testing.T) {
	for name, value := range map[string]string{"BATCH_ID": "7", "AWS_SECRET": "no", "CUDA_VISIBLE_DEVICES": "0", "TMPDIR": "/scratch", "HOMEBREW": "no"} {
		t.Setenv(name, value)
	}
	r := &runtime{keepVariable: func(name string) bool { return strings.HasPrefix(name, "BATCH_") }}
	config := &runtimeapi.ContainerConfig{Envs: []*runtimeapi.KeyValue{{Key: "BATCH_ID", Value: []byte("mine")}, {Key: "A", Value: []byte("1")}, {Key: "A", Value: []byte("2")}}}
	for of, tmpdir := range map[*Image]bool{nil: true, {}: false} {
		env := r.environment(config, of)
		text := strings.Join(env, "\n")
		if strings.Contains(text, "AWS_SECRET") || strings.Contains(text, "HOMEBREW") || strings.Count(text, "BATCH_ID=mine") != 1 || strings.Contains(text, "=7") || !strings.HasSuffix(text, "A=2") {
			t.Errorf("environment %q", env)
		}
		if !slices.Contains(env, "CUDA_VISIBLE_DEVICES=0") || slices.Contains(env, "TMPDIR=/scratch") != tmpdir {
			t.Errorf("environment %q, want the devices, and TMPDIR: %t", env, tmpdir)
		}
	}
	if env := (&runtime{}).environment(config, nil); slices.Contains(env, "BATCH_ID=7") {
		t.Errorf("a host that keeps nothing: %q", env)
	}
}
