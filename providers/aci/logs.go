// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Logs implements service.LogReader. ACI gives the last lines of a log, 4 MB at most, and has no log of a run before.
func (d *driver) Logs(ctx context.Context, of service.Target[instance], opts api.ContainerLogOpts) (io.ReadCloser, error) {
	if opts.Previous {
		return nil, errdefs.InvalidInput("ACI keeps no log of the run before")
	}
	source := &logSource{d: d, of: of}
	if opts.Tail > 0 && !opts.Follow {
		source.tail = int32(min(opts.Tail, 1<<20))
	}
	return logs.NewReader(ctx, source, opts, time.Now()), nil
}

// logSource reads a log again and again, and gives what is new.
type logSource struct {
	d    *driver
	of   service.Target[instance]
	tail int32

	read  bool
	given logs.Line // the last line
	same  int       // how many lines like it in a row were given
	count int       // lines of the last answer
	over  bool
}

// Next implements logs.Source.
func (s *logSource) Next(ctx context.Context, wait bool) ([]logs.Line, error) {
	for {
		if s.over || s.read && !wait {
			return nil, io.EOF
		}
		if s.read {
			timer := time.NewTimer(s.d.followEvery)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return nil, ctx.Err()
			}
		}
		ended := s.ended() // before the log is read: nothing comes after it
		text, err := s.d.client.logs(ctx, value(s.of.Instance.group.Name), s.of.Container, s.tail)
		if errdefs.IsNotFound(err) && s.read {
			return nil, io.EOF // with the group
		}
		if err != nil {
			return nil, err
		}
		lines := s.fresh(parse(text, ended))
		s.read, s.over = true, ended
		if len(lines) > 0 {
			return lines, nil
		}
	}
}

// ended reports whether the container runs no more, and is not started again.
func (s *logSource) ended() bool {
	pod, _, ok := s.d.kit.Cache().Get(s.of.Pod.UID)
	if !ok || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	now := service.StateOf(pod, s.of.Container)
	if now == nil || now.State.Terminated == nil {
		return false
	}
	again := true
	_ = service.Containers(pod, func(c *corev1.Container, _ bool, _ *field.Path) error { // it returns no error
		if c.Name == s.of.Container {
			again = podstatus.RestartsAfter(pod, c, now.State.Terminated.ExitCode)
		}
		return nil
	})
	return !again
}

// fresh are the lines that come after those that were given. A log only grows at its end, and loses lines at its beginning.
func (s *logSource) fresh(all []logs.Line) []logs.Line {
	from := 0
	if s.read && s.count > 0 {
		from = len(all)
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].At.Before(s.given.At) {
				break
			}
			from = i
		}
		// Of those of the same time as the last one some were given.
		skip := s.same
		for from < len(all) && skip > 0 && all[from].At.Equal(s.given.At) {
			from, skip = from+1, skip-1
		}
	}
	out := all[from:]
	for _, l := range out {
		if s.count > 0 && l.At.Equal(s.given.At) {
			s.same++
		} else {
			s.same = 1
		}
		s.given = l
		s.count++
	}
	return out
}

// parse reads lines that begin with a time. The last line of a log that grows is left out while it has no end.
func parse(text string, whole bool) (lines []logs.Line) {
	var at time.Time
	for part := range strings.SplitAfterSeq(text, "\n") {
		if part == "" || !whole && !strings.HasSuffix(part, "\n") {
			continue
		}
		stamp, rest, _ := strings.Cut(part, " ")
		if t, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
			at, part = t, rest
		}
		lines = append(lines, logs.Line{At: at, Text: []byte(part)})
	}
	return lines
}
