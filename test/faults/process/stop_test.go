// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// stopTime is the time limit for the end of the daemon after SIGTERM.
const stopTime = 5 * time.Second

// TestFault04StoppedInChurn stops the daemon with SIGTERM while pods come and go, and while a session is open in
// one of them.
func TestFault04StoppedInChurn(t *testing.T) {
	t.Parallel()
	cycles := 3
	if faultrow.Long() {
		cycles = 50
	}
	w := newWorld(t, quick)
	a := &actor{world: w, name: "session"}
	a.create(corev1.RestartPolicyAlways)
	churn := w.churnAt(5)
	var stops durations
	sessions := 0
	for range cycles {
		c := w.start()
		a.awaitPhase(corev1.PodRunning)
		var ended []<-chan error
		for _, spdy := range []bool{true, false} {
			ended = append(ended, w.exec(spdy, "wait"))
			sessions++
		}
		pass(w.Context(), time.Second) // of churn
		took := c.stop()
		stops = append(stops, took)
		for _, e := range ended {
			select {
			case err := <-e:
				if err == nil {
					t.Error("a session that was cut short ended without an error")
				}
			case <-time.After(patience):
				t.Fatal("a session outlives the daemon")
			}
		}
	}
	w.start()
	churn.stop()
	w.awaitInStep()
	w.judged()
	if longest := stops.p(100); longest > faultrow.Budget(stopTime) {
		t.Errorf("the daemon took %v to stop, want at most %v", longest, stopTime)
	}
	faultrow.Record(t, 4, fmt.Sprintf("SIGTERM %d times, with 5 pods/s of churn and %d sessions", cycles, sessions),
		"violations 0 in %d pods; stop took at most %v; %d/%d sessions ended with an error", w.records.pods, stops.p(100).Round(time.Millisecond), sessions, sessions)
}

// exec runs a command in the pod "session", and returns when it has begun. The channel gets the result of the
// command.
func (w *world) exec(spdy bool, command ...string) <-chan error {
	w.Helper()
	begun := make(chan struct{})
	ended := make(chan error, 1)
	output := &firstWrite{begun: begun}
	go func() {
		ended <- w.run(w.Context(), spdy, "session", output, command...)
	}()
	select {
	case <-begun:
	case err := <-ended:
		w.Fatalf("exec ended before it began: %v", err)
	case <-time.After(patience):
		w.Fatal("exec does not begin")
	}
	return ended
}

// run runs a command in a pod, over SPDY or over WebSocket.
func (w *world) run(ctx context.Context, spdy bool, pod string, output io.Writer, command ...string) error {
	req := w.api.Client.CoreV1().RESTClient().Post().Namespace(w.namespace).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "main", Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	var executor remotecommand.Executor
	var err error
	if spdy {
		executor, err = remotecommand.NewSPDYExecutor(w.api.Config, "POST", req.URL())
	} else {
		executor, err = remotecommand.NewWebSocketExecutor(w.api.Config, "GET", req.URL().String())
	}
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: output, Stderr: &bytes.Buffer{}})
}

// firstWrite closes begun at the first write.
type firstWrite struct {
	begun chan struct{}
	told  bool
}

// Write signals the first write.
func (f *firstWrite) Write(b []byte) (int, error) {
	if !f.told {
		f.told = true
		close(f.begun)
	}
	return len(b), nil
}
