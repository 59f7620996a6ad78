// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

func readLog(t *testing.T, p *provider, pod string, opts api.ContainerLogOpts) []string {
	t.Helper()
	log, err := p.GetContainerLogs(t.Context(), "ns", pod, "c", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	data, err := io.ReadAll(log)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), "pod ns/"+pod+" container c ", "")
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func TestLogOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t, Config{})
		create(t, p, newPod("a"))
		begin := time.Now()
		time.Sleep(3500 * time.Millisecond)
		line := func(n string) string { return "has been running for " + n + " s" }
		for _, tc := range []struct {
			name string
			opts api.ContainerLogOpts
			want []string
		}{
			{"all", api.ContainerLogOpts{}, []string{"started", line("1"), line("2"), line("3")}},
			{"tail", api.ContainerLogOpts{Tail: 2}, []string{line("2"), line("3")}},
			{"seconds", api.ContainerLogOpts{SinceSeconds: 2}, []string{line("2"), line("3")}},
			{"since", api.ContainerLogOpts{SinceTime: begin.Add(3 * time.Second)}, []string{line("3")}},
			{"timestamps", api.ContainerLogOpts{Tail: 1, Timestamps: true}, []string{begin.Add(3*time.Second).UTC().Format("2006-01-02T15:04:05.000000000Z") + " " + line("3")}},
		} {
			if diff := cmp.Diff(tc.want, readLog(t, p, "a", tc.opts)); diff != "" {
				t.Errorf("%s: %s", tc.name, diff)
			}
		}
		log, err := p.GetContainerLogs(t.Context(), "ns", "a", "c", api.ContainerLogOpts{LimitBytes: 35})
		if err != nil {
			t.Fatal(err)
		}
		if data, _ := io.ReadAll(log); string(data) != "pod ns/a container c started\npod ns" {
			t.Errorf("limit: got %q", data)
		}
		time.Sleep(24 * time.Hour)
		if n := len(readLog(t, p, "a", api.ContainerLogOpts{})); n != logLimit {
			t.Errorf("after a day: got %d lines, want %d", n, logLimit)
		}
	})
}

func TestLogFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t, Config{})
		create(t, p, newPod("job", "run-for", "2500ms", "exit-code", "3"), newPod("a"))
		want := []string{"started", "has been running for 1 s", "has been running for 2 s", "ended with exit code 3"}
		if diff := cmp.Diff(want, readLog(t, p, "job", api.ContainerLogOpts{Follow: true})); diff != "" {
			t.Error(diff)
		}
		if got := time.Since(p.start); got > 4*time.Second {
			t.Errorf("the log of a job of 2.5 s ended after %s", got)
		}

		log, err := p.GetContainerLogs(t.Context(), "ns", "a", "c", api.ContainerLogOpts{Follow: true, Tail: 1})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			_, err := io.Copy(io.Discard, log)
			done <- err
		}()
		synctest.Wait()
		log.Close()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("read of a closed log: got %v, want that it was cancelled", err)
		}
	})
}

func TestPreviousLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t, Config{})
		create(t, p, newPod("a", "run-for", "2s", "restart-delay", "1s"))
		if _, err := p.GetContainerLogs(t.Context(), "ns", "a", "c", api.ContainerLogOpts{Previous: true}); !errdefs.IsInvalidInput(err) {
			t.Errorf("got %v, want an error: there was no run before", err)
		}
		time.Sleep(4 * time.Second)
		want := []string{"started", "has been running for 1 s", "has been running for 2 s", "ended with exit code 0"}
		if diff := cmp.Diff(want, readLog(t, p, "a", api.ContainerLogOpts{Previous: true})); diff != "" {
			t.Error(diff)
		}
	})
}
