// SPDX-License-Identifier: Apache-2.0

package podblobs

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azblobs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/joblog"
)

// Logs opens the log of a container. The log outlives the machine. now returns the current pod, or nil when it is gone.
func (p *Pods) Logs(ctx context.Context, pod *corev1.Pod, container string, opts api.ContainerLogOpts, now func() *corev1.Pod) (io.ReadCloser, error) {
	prefix := logPrefix(p.Prefix, pod.UID, container)
	all, err := p.Blobs.List(ctx, prefix, false)
	if err != nil {
		return nil, err
	}
	last := -1
	for _, b := range all {
		run, _, _ := strings.Cut(strings.TrimPrefix(b.Name, prefix), "/")
		if n, err := strconv.Atoi(run); err == nil {
			last = max(last, n)
		}
	}
	s := service.StateOf(pod, container)
	if s != nil && s.State.Running != nil { // the blob appears with the first line of output
		last = max(last, int(s.RestartCount))
	}
	if opts.Previous {
		last--
	}
	began := s != nil && (s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil)
	switch {
	case last < 0 && opts.Previous:
		return nil, errdefs.InvalidInputf("previous terminated container %q in pod %q not found", container, pod.Name)
	case last < 0 && !began:
		return nil, errdefs.InvalidInputf("container %q in pod %q is waiting to start: ContainerCreating", container, pod.Name)
	}
	over := func() bool {
		now := now()
		return now == nil || opts.Previous || !isRunning(now, container, last)
	}
	return logs.NewReader(ctx, &logSource{blobs: p.Blobs, prefix: prefix + strconv.Itoa(last) + "/", over: over, every: p.Every, at: map[string]int64{}}, opts, time.Now()), nil
}

// isRunning reports whether that run of the container may still write.
func isRunning(pod *corev1.Pod, name string, run int) bool {
	s := service.StateOf(pod, name)
	return s != nil && s.State.Terminated == nil && int(s.RestartCount) <= run && (s.State.Running != nil || s.LastTerminationState.Terminated == nil)
}

// logSource reads the segments of one run of a container.
type logSource struct {
	blobs  *azblobs.Container
	prefix string
	over   func() bool
	every  time.Duration
	at     map[string]int64 // the number of bytes read from each segment
	part   []byte           // of an incomplete line
	lines  joblog.Lines
}

// Next implements logs.Source.
func (s *logSource) Next(ctx context.Context, wait bool) ([]logs.Line, error) {
	for {
		over := wait && s.over() // checked first, because later output is read once more
		lines, err := s.read(ctx)
		if err != nil || len(lines) > 0 {
			return lines, err
		}
		if !wait || over {
			return nil, io.EOF
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(s.every):
		}
	}
}

// read returns new lines. It lists the blobs to find segments with new data.
func (s *logSource) read(ctx context.Context) (lines []logs.Line, err error) {
	segments, err := s.blobs.List(ctx, s.prefix, false)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(segments, func(a, b azblobs.Blob) int { return strings.Compare(a.Name, b.Name) })
	for _, b := range segments {
		if b.Size <= s.at[b.Name] {
			continue
		}
		more, err := s.blobs.Get(ctx, b.Name, "", s.at[b.Name])
		if errdefs.IsNotFound(err) {
			continue // removed as an outdated segment
		}
		if err != nil {
			return nil, err
		}
		s.at[b.Name] += int64(len(more.Data))
		data := append(s.part, more.Data...)
		for {
			line, rest, whole := bytes.Cut(data, []byte("\n"))
			if !whole {
				break
			}
			data = rest
			if l, ok := s.lines.Line(line); ok {
				lines = append(lines, l)
			}
		}
		s.part = bytes.Clone(data)
		if len(lines) > 0 {
			return lines, nil
		}
	}
	return nil, nil
}
