// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	stdslog "log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// logBuffer stores log lines.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// take returns the text since the last call.
func (l *logBuffer) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}

// logInto makes the next controller of the world log into the returned buffer, without times.
func (w *world) logInto(level stdslog.Level) *logBuffer {
	lines := &logBuffer{}
	w.logger = slog.FromSlog(stdslog.New(stdslog.NewTextHandler(lines, &stdslog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(_ []string, a stdslog.Attr) stdslog.Attr {
			if a.Key == stdslog.TimeKey {
				return stdslog.Attr{}
			}
			return a
		},
	})))
	return lines
}

// wantLines fails the test unless exactly these lines were logged since the last call.
func (w *world) wantLines(lines *logBuffer, when string, want ...string) {
	w.Helper()
	if got := strings.TrimSpace(lines.take()); got != strings.Join(want, "\n") {
		w.Errorf("%s: the lines are\n%s\nwant\n%s", when, got, strings.Join(want, "\n"))
	}
}

// end makes the backend end a pod, three seconds after its start.
func (w *world) end(name string, code int32, phase corev1.PodPhase, reason string) {
	w.backend.Change("d/"+name, func(p *corev1.Pod) {
		p.Status.Phase = phase
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Image: "i", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason},
		}}}
	})
}

// TestLogHasOneLineForEachPartOfALife: a pod is created, and then it ends, fails or is stopped.
func TestLogHasOneLineForEachPartOfALife(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		lines := w.logInto(stdslog.LevelInfo)
		w.start()
		w.wantLines(lines, "start")
		for _, name := range []string{"ends", "fails", "goes"} {
			pod := bound(name, types.UID("uid-of-"+name))
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			w.api.Create(pod)
			w.pass(0)
			w.wantLines(lines, "create "+name, `level=INFO msg="the pod was created" pod=d/`+name+` podUID=uid-of-`+name+` duration=0s`)
		}
		w.pass(3 * time.Second)
		w.end("ends", 0, corev1.PodSucceeded, "Completed")
		w.pass(time.Second)
		w.wantLines(lines, "success", `level=INFO msg="the pod has ended" pod=d/ends podUID=uid-of-ends reason=Completed duration=3s`)
		w.end("fails", 7, corev1.PodFailed, "Error")
		w.pass(time.Second)
		w.wantLines(lines, "failure", `level=INFO msg="the pod has failed" pod=d/fails podUID=uid-of-fails reason="Error (container c, exit code 7)" duration=4s`)
		w.api.Delete("d", "goes", 30)
		w.pass(0)
		w.pass(time.Minute)
		w.wantLines(lines, "stop", `level=INFO msg="the pod was stopped" pod=d/goes podUID=uid-of-goes reason=Deleted duration=0s`)
		for _, name := range []string{"ends", "fails"} { // their end was logged
			w.api.Delete("d", name, 30)
		}
		w.pass(time.Minute)
		w.wantLines(lines, "deletion of ended pods")
	})
}

// TestLogSaysWhyThePodFailed: one pod is rejected, another exceeds its deadline, and the backend loses a third.
func TestLogSaysWhyThePodFailed(t *testing.T) {
	b := memory.New()
	b.Script(func(_ context.Context, method, key string) error {
		if method == "create" && key == "d/rejected" {
			return errdefs.InvalidInput("no such size")
		}
		return nil
	})
	inWorld(t, b, func(w *world) {
		lines := w.logInto(stdslog.LevelInfo)
		w.start()
		for _, name := range []string{"rejected", "lost"} {
			pod := bound(name, types.UID("uid-of-"+name))
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			w.api.Create(pod)
			w.pass(time.Second)
		}
		w.wantLines(lines, "begin",
			`level=INFO msg="the pod has failed" pod=d/rejected podUID=uid-of-rejected reason=ProviderPodRejected message="no such size"`,
			`level=INFO msg="the pod was created" pod=d/lost podUID=uid-of-lost duration=0s`)
		late := bound("late", "uid-of-late")
		late.Spec.ActiveDeadlineSeconds = new(int64)
		*late.Spec.ActiveDeadlineSeconds = 30
		w.api.Create(late)
		w.pass(time.Minute)
		const began = `level=INFO msg="the pod was created" pod=d/late podUID=uid-of-late duration=0s` + "\n" +
			`level=INFO msg="the pod has failed" pod=d/late podUID=uid-of-late reason=DeadlineExceeded duration=`
		if got := strings.TrimSpace(lines.take()); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, began) {
			t.Errorf("the lines about a pod over its deadline are\n%s\nwant\n%s", got, began)
		}
		b.Lose("d/lost")
		w.pass(5 * time.Minute)
		got := strings.TrimSpace(lines.take())
		if strings.Count(got, "\n") != 0 || !strings.HasPrefix(got, `level=INFO msg="the pod has failed" pod=d/lost podUID=uid-of-lost reason=ProviderPodLost duration=`) || !strings.Contains(got, "no longer has the pod") {
			t.Errorf("the lines about a lost pod are\n%s\nwant one, with the reason", got)
		}
	})
}

// TestLogIsSilentAtRest holds that pods at rest make no line, not even for debugging.
func TestLogIsSilentAtRest(t *testing.T) {
	for name, configs := range map[string][]func(*PodControllerConfig){"notifying": nil, "polled": {silent}} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			inWorld(t, b, func(w *world) {
				lines := w.logInto(stdslog.LevelDebug)
				w.start()
				w.runWith("p", 20, corev1.RestartPolicyNever)
				w.end("p0", 0, corev1.PodSucceeded, "Completed")
				w.pass(2 * time.Minute)
				if got := lines.take(); strings.Count(got, `msg="the pod was created"`) != 20 || !strings.Contains(got, "decided: Create, because the backend lacks the pod") {
					t.Errorf("the lines of the begin are\n%s", got)
				}
				w.pass(2 * time.Hour)
				w.wantLines(lines, "two hours at rest")
			}, configs...)
		})
	}
}

// TestLogHasNoSecretValue: the backend repeats the value of a Secret, in an error and in a status.
func TestLogHasNoSecretValue(t *testing.T) {
	const canary = "c4n4ry value"
	b := memory.New()
	tries := 0
	b.Script(func(_ context.Context, method, _ string) error {
		if tries++; method == "create" && tries < 6 {
			return errors.New("cannot start with " + canary + " or " + base64.StdEncoding.EncodeToString([]byte(canary)))
		}
		return nil
	})
	inWorld(t, b, func(w *world) {
		pod := w.withSecret("p", "a", canary)
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		lines := w.logInto(stdslog.LevelDebug)
		w.start()
		w.api.Create(pod)
		w.pass(5 * time.Minute)
		b.Change("d/p", func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Bad", "ended with "+canary
		})
		w.pass(time.Minute)
		got := lines.take()
		if strings.Contains(got, "c4n4ry") || strings.Contains(got, base64.StdEncoding.EncodeToString([]byte(canary))) {
			t.Errorf("the value of a Secret is in\n%s", got)
		}
		for _, want := range []string{"cannot start with [redacted]", `msg="the pod has failed"`, "ended with [redacted]"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in\n%s", want, got)
			}
		}
	})
}
