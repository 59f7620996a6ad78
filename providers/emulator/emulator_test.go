// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// counter is a service that counts POST requests.
type counter struct{ n atomic.Int32 }

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.n.Add(1)
	_, _ = w.Write(append([]byte("got "), body...))
}

func TestRequestsAreBroken(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  Fault
		effect int
		answer string // "" means no answer
	}{
		{"none", Fault{Operations: []string{"Other"}}, 1, "got x"},
		{"an error", Fault{Operations: []string{"Make"}, Answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) }}, 0, "busy\n"},
		{"a lost answer", Fault{Lose: true}, 1, ""},
		{"silence", Fault{Hang: true}, 0, ""},
		{"a delay", Fault{Delay: time.Hour}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			service := &counter{}
			front := NewFront(func(*http.Request, []byte) string { return "Make" }, service)
			server := httptest.NewServer(front)
			mend := front.Break(c.fault)
			ctx, cancel := context.WithCancel(t.Context())
			post := func(ctx context.Context) string {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("x"))
				if err != nil {
					t.Fatal(err)
				}
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					return ""
				}
				defer answer.Body.Close()
				data, _ := io.ReadAll(answer.Body)
				return string(data)
			}
			if c.fault.Hang || c.fault.Delay > 0 {
				front.operation = func(*http.Request, []byte) string { cancel(); return "Make" } // the client gives up once its request was received
			}
			if got := post(ctx); got != c.answer || int(service.n.Load()) != c.effect {
				t.Errorf("answer %q and %d effects, want %q and %d", got, service.n.Load(), c.answer, c.effect)
			}
			cancel()
			mend()
			front.operation = func(*http.Request, []byte) string { return "Make" }
			if got := post(t.Context()); got != "got x" {
				t.Errorf("after the fault: %q", got)
			}
			server.Close()
			if got := front.Requests("Make"); len(got) != 2 || string(got[0].Body) != "x" || len(front.Requests("Other")) != 0 {
				t.Errorf("requests: %+v", got)
			}
		})
	}
}

func TestAFewRequestsAreBroken(t *testing.T) {
	service := &counter{}
	front := NewFront(func(*http.Request, []byte) string { return "Make" }, service)
	front.Break(Fault{Times: 2, Answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }})
	for range 3 {
		front.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
	}
	if n := service.n.Load(); n != 1 {
		t.Errorf("%d of 3 requests had an effect, want 1", n)
	}
}

func group(id string, p program.Program) Group {
	return Group{ID: id, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "any", Args: p.Args()}},
	}}
}

// TestGroupsRun runs and ends containers, with lists that are late by a minute.
func TestGroupsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		runner := inprocess.Open(inprocess.New(ctx), inprocess.Objects{})
		fleet := NewFleet(runner, &Objects{}, time.Minute)
		runner.NotifyPods(ctx, fleet.Report)
		done := make(chan error)
		go func() { done <- runner.RunInBackground(ctx) }()
		for id, p := range map[string]program.Program{"ends": {Exit: 7}, "stays": {Stay: program.Forever, Deaf: true}} {
			if err := fleet.Start(ctx, group(id, p)); err != nil {
				t.Fatal(err)
			}
		}
		if err := fleet.Start(ctx, group("ends", program.Program{})); !errdefs.IsInvalidInput(err) {
			t.Errorf("a second group of an ID: got %v", err)
		}
		synctest.Wait()
		listed := func() (n int) {
			all, err := fleet.List(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		if n := listed(); n != 0 {
			t.Errorf("%d groups are in a list at once", n)
		}
		time.Sleep(time.Minute)
		if n := listed(); n != 2 {
			t.Errorf("%d groups are in a list after the lag", n)
		}
		if g, err := fleet.Get(ctx, "ends"); err != nil || g.Status.ContainerStatuses[0].State.Terminated.ExitCode != 7 {
			t.Errorf("got %+v, %v", g, err)
		}
		if err := fleet.Stop(ctx, "stays", 5); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		g, err := fleet.Get(ctx, "stays")
		if err != nil || !g.Gone || g.Status.ContainerStatuses[0].State.Terminated == nil || g.Status.ContainerStatuses[0].State.Terminated.ExitCode != 137 {
			t.Errorf("a group that was stopped shows how it ended: got %+v, %v", g, err)
		}
		if n := listed(); n != 2 {
			t.Errorf("%d groups are in a list that is late", n)
		}
		if err := fleet.Stop(ctx, "stays", 5); !errdefs.IsNotFound(err) {
			t.Errorf("a stop of what is gone: %v", err)
		}
		time.Sleep(time.Minute)
		if n := listed(); n != 1 {
			t.Errorf("%d groups are in a list after the lag", n)
		}
		if _, err := fleet.Get(ctx, "stays"); !errdefs.IsNotFound(err) {
			t.Errorf("Get of what is gone: %v", err)
		}
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
