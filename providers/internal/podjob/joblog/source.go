// SPDX-License-Identifier: Apache-2.0

package joblog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Open returns the log of a container of its last run, or of the previous run if opts select that. Root is the Config.LogDir of the pod's process.
// now returns the pod with its status, and false when the pod is gone: a followed log ends when the run has ended.
func Open(ctx context.Context, root string, pod *corev1.Pod, container string, opts api.ContainerLogOpts, now func() (corev1.PodStatus, bool)) (io.ReadCloser, error) {
	dir := filepath.Join(root, strings.Join([]string{pod.Namespace, pod.Name, string(pod.UID)}, "_"), container)
	last := -1
	entries, _ := os.ReadDir(dir) // the directory does not exist before the container begins
	for _, e := range entries {
		n, ok := strings.CutSuffix(e.Name(), ".log")
		if i, err := strconv.Atoi(n); ok && err == nil {
			last = max(last, i)
		}
	}
	if opts.Previous {
		last--
	}
	switch {
	case last < 0 && opts.Previous:
		return nil, errdefs.InvalidInputf("previous terminated container %q in pod %q not found", container, pod.Name)
	case last < 0:
		return nil, errdefs.InvalidInputf("container %q in pod %q is waiting to start: ContainerCreating", container, pod.Name)
	}
	over := func() bool {
		s, there := now()
		return !there || opts.Previous || !runs(s, container, last)
	}
	return logs.NewReader(ctx, &source{path: filepath.Join(dir, strconv.Itoa(last)+".log"), over: over, older: podjob.KeptLogs}, opts, time.Now()), nil
}

// runs reports whether that run of the container may still write.
func runs(pod corev1.PodStatus, name string, run int) bool {
	for _, list := range [][]corev1.ContainerStatus{pod.InitContainerStatuses, pod.ContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return list[i].State.Terminated == nil && int(list[i].RestartCount) <= run && (list[i].State.Running != nil || list[i].LastTerminationState.Terminated == nil)
			}
		}
	}
	return false
}

// followEvery is the interval of reads of a followed log.
const followEvery = 200 * time.Millisecond

// source reads one run of a container, its rotated files first.
type source struct {
	path  string
	over  func() bool
	older int

	file *os.File
	r    *bufio.Reader
	part []byte // of an incomplete line in the file
	text Lines
}

// Next implements logs.Source.
func (s *source) Next(ctx context.Context, wait bool) ([]logs.Line, error) {
	for {
		over := wait && s.over() // checked first, because later output is read once more
		lines, err := s.read()
		if err != nil || len(lines) > 0 {
			return lines, err
		}
		if !wait || over {
			return nil, io.EOF
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(followEvery):
		}
	}
}

// maxLines is the largest number of lines of one read.
const maxLines = 1000

func (s *source) read() (lines []logs.Line, err error) {
	for len(lines) < maxLines {
		if s.file == nil {
			if err := s.open(); err != nil || s.file == nil {
				return lines, err
			}
		}
		data, err := s.r.ReadBytes('\n')
		s.part = append(s.part, data...)
		if errors.Is(err, io.EOF) {
			if !s.rotated() {
				return lines, nil
			}
			_ = s.file.Close()
			s.file = nil
			continue
		}
		if err != nil {
			return lines, fmt.Errorf("read the log: %w", err)
		}
		if line, ok := s.text.Line(s.part); ok {
			lines = append(lines, line)
		}
		s.part = nil
	}
	return lines, nil
}

// open opens the oldest unread file.
func (s *source) open() error {
	for ; s.older >= 0; s.older-- {
		path := s.path
		if s.older > 0 {
			path += "." + strconv.Itoa(s.older)
		}
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		s.file, s.r, s.part = f, bufio.NewReader(f), nil
		return nil
	}
	return io.EOF
}

// rotated reports whether there is a newer file than the last file read to its end.
func (s *source) rotated() bool {
	if s.older > 0 {
		s.older--
		return true
	}
	now, err := os.Stat(s.path)
	read, readErr := s.file.Stat()
	return err == nil && readErr == nil && !os.SameFile(now, read)
}

// Close closes the file.
func (s *source) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
