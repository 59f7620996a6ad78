// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

func TestLogOptionsReachProvider(t *testing.T) {
	var got api.ContainerLogOpts
	s := serve(t, api.PodHandlerConfig{GetContainerLogs: func(_ context.Context, ns, pod, container string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
		if ns != "default" || pod != "web" || container != "app" {
			t.Errorf("got %s/%s/%s", ns, pod, container)
		}
		got = opts
		return io.NopCloser(strings.NewReader("")), nil
	}})
	for query, want := range map[string]api.ContainerLogOpts{
		"":                           {},
		"?tailLines=":                {},
		"?tailLines=5&limitBytes=10": {Tail: 5, LimitBytes: 10},
		"?follow=true&timestamps=1&previous=t&stream=All": {Follow: true, Timestamps: true, Previous: true},
		"?sinceSeconds=7":                   {SinceSeconds: 7},
		"?sinceTime=2026-01-02T03:04:05.5Z": {SinceTime: time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC)},
	} {
		if code, body := s.get(t, logsPath+query); code != http.StatusOK || body != "" {
			t.Errorf("%s: got %d %q", query, code, body)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", query, diff)
		}
	}
}

func TestBadLogOptionsAreRefused(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{GetContainerLogs: func(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
		t.Error("provider was called")
		return nil, errBackend
	}})
	for query, option := range map[string]string{
		"tailLines=-1":                   "tailLines",
		"tailLines=many":                 "tailLines",
		"limitBytes=0":                   "limitBytes",
		"sinceSeconds=0":                 "sinceSeconds",
		"sinceSeconds=1.5":               "sinceSeconds",
		"sinceTime=yesterday":            "sinceTime",
		"follow=maybe":                   "follow",
		"timestamps=2":                   "timestamps",
		"previous=x":                     "previous",
		"stream=Stdout":                  "stream",
		"tailLines=99999999999999999999": "tailLines",
		"sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z": "exclude each other",
	} {
		code, header, body := s.do(t, http.MethodGet, logsPath+"?"+query)
		if code != http.StatusBadRequest || !strings.Contains(body, option) || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s: got %d %q, want 400 and %q in plain text", query, code, body, option)
		}
	}
}

// TestLimitsAreAppliedOnce: the answer is the same whether the provider ignores the options and returns its
// whole log, or returns the requested part.
func TestLimitsAreAppliedOnce(t *testing.T) {
	for _, tc := range []struct{ query, provider, want string }{
		{"tailLines=2", "a\nb\nc\n", "b\nc\n"},
		{"tailLines=2", "b\nc\n", "b\nc\n"},
		{"tailLines=2", "a\nb\nc", "b\nc"},
		{"tailLines=2", "b\nc", "b\nc"},
		{"tailLines=9", "a\nb\nc", "a\nb\nc"},
		{"tailLines=1", "\n\n\n", "\n"},
		{"tailLines=0", "a\nb\n", ""},
		{"limitBytes=3", "a\nb\nc\n", "a\nb"},
		{"limitBytes=3", "a\nb", "a\nb"},
		{"tailLines=2&limitBytes=3", "a\nb\nc\n", "b\nc"},
		{"tailLines=2&limitBytes=3", "b\nc", "b\nc"},
		{"", "a\nb\nc", "a\nb\nc"},
	} {
		s := serve(t, api.PodHandlerConfig{GetContainerLogs: plainLog(tc.provider)})
		if code, body := s.get(t, logsPath+"?"+tc.query); code != http.StatusOK || body != tc.want {
			t.Errorf("%s of %q: got %d %q, want %q", tc.query, tc.provider, code, body, tc.want)
		}
	}
}

// TestBigTailIsComplete: a tail that the provider has already cut is not cut again, however big it is.
func TestBigTailIsComplete(t *testing.T) {
	line := strings.Repeat("x", 1<<20) + "\n"
	text := strings.Repeat(line, 12)
	s := serve(t, api.PodHandlerConfig{GetContainerLogs: plainLog(text)})
	if code, body := s.get(t, logsPath+"?tailLines=12"); code != http.StatusOK || body != text {
		t.Errorf("got %d and %d bytes, want %d", code, len(body), len(text))
	}
	if code, body := s.get(t, logsPath+"?tailLines=2"); code != http.StatusOK || body != line+line {
		t.Errorf("got %d and %d bytes, want %d", code, len(body), 2*len(line))
	}
}

func TestTailZeroWithFollowAsksForNewLines(t *testing.T) {
	before := time.Now()
	var got api.ContainerLogOpts
	s := serve(t, api.PodHandlerConfig{GetContainerLogs: func(_ context.Context, _, _, _ string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
		got = opts
		return io.NopCloser(strings.NewReader("new\n")), nil
	}})
	if code, body := s.get(t, logsPath+"?tailLines=0&follow=true&sinceSeconds=60"); code != http.StatusOK || body != "new\n" {
		t.Errorf("got %d %q", code, body)
	}
	if got.SinceTime.Before(before) || got.SinceTime.After(time.Now()) || got.SinceSeconds != 0 || got.Tail != 0 {
		t.Errorf("provider got %+v, want only lines from now on", got)
	}
}
