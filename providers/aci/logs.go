// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
)

// followEvery is how often a log that is followed is read.
const followEvery = 2 * time.Second

// GetContainerLogs returns the log of a container. ACI gives the last lines of it, 4 MB at most, and has no log of a run before.
func (p *provider) GetContainerLogs(ctx context.Context, namespace, pod, name string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	i, err := p.begun(ctx, namespace, pod, name)
	if err != nil {
		return nil, err
	}
	if opts.Previous {
		return nil, errdefs.InvalidInputf("pod %s/%s: ACI keeps no log of the run before", namespace, pod)
	}
	source := &logSource{p: p, pod: i, container: name, every: p.followEvery}
	if opts.Tail > 0 && !opts.Follow {
		source.tail = int32(min(opts.Tail, 1<<20))
	}
	return logs.NewReader(ctx, source, opts, time.Now()), nil
}

// logSource reads a log again and again, and gives what is new.
type logSource struct {
	p         *provider
	pod       instance
	container string
	tail      int32
	every     time.Duration

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
			timer := time.NewTimer(s.every)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return nil, ctx.Err()
			}
		}
		ended := s.p.ended(s.pod, s.container) // before the log is read: nothing comes after it
		text, err := s.p.client.logs(ctx, value(s.pod.group.Name), s.container, s.tail)
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
