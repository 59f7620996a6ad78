// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
)

// logLimit is the number of lines kept of a log. Older lines are gone, as after a rotation.
const logLimit = 10_000

// GetContainerLogs returns the log of a container: a line at its start, a line for each second of running, and a
// line at its end. All options are honoured.
func (p *provider) GetContainerLogs(ctx context.Context, namespace, podName, containerName string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	now := time.Now()
	p.mu.Lock()
	s, _, err := p.findContainer(namespace, podName, containerName, now)
	if err != nil {
		p.mu.Unlock()
		return nil, err
	}
	m, uid := s.life.momentAt(now), s.pod.UID
	p.mu.Unlock()

	name := fmt.Sprintf("pod %s/%s container %s", namespace, podName, containerName)
	if opts.Previous {
		if m.last == nil && m.stage != restarting {
			return nil, errdefs.InvalidInputf("%s has no previous run", name)
		}
		if m.stage != restarting { // during a restart, the current run is the last ended run
			m = *m.last
		}
		opts.Follow = false
	}
	if m.started.IsZero() {
		return nil, errdefs.InvalidInputf("%s is waiting to start: ContainerCreating", name)
	}
	l := &lines{name: name, moment: m, now: now}
	l.next = max(0, l.lineCount()-logLimit)
	if opts.Follow {
		l.look = func(now time.Time) (moment, bool) { return p.currentMoment(namespace, podName, uid, now) }
	}
	return logs.NewReader(ctx, l, opts, now), nil
}

// currentMoment returns the state of a pod, and false if the pod is gone.
func (p *provider) currentMoment(namespace, name string, uid types.UID, now time.Time) (moment, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.findPod(namespace, name, now)
	if s == nil || s.pod.UID != uid {
		return moment{}, false
	}
	return s.life.momentAt(now), true
}

// lines holds the log lines of one run of a container. Line 0 reports the start, line n reports n seconds of
// running.
type lines struct {
	name   string
	moment moment
	now    time.Time
	next   int

	look func(now time.Time) (moment, bool) // set only to follow
}

// lineCount is how many lines there are.
func (l *lines) lineCount() int {
	if end, over := l.endTime(); over {
		return int(end.Sub(l.moment.started)/time.Second) + 2
	}
	return max(0, int(l.now.Sub(l.moment.started)/time.Second)+1)
}

// endTime is when the run ended, if it did.
func (l *lines) endTime() (time.Time, bool) {
	return l.moment.finished, l.moment.stage == exited || l.moment.stage == restarting
}

// lineAt returns the time and the text of line n.
func (l *lines) lineAt(n int) (time.Time, string) {
	if end, over := l.endTime(); over && n == l.lineCount()-1 {
		return end, fmt.Sprintf("%s ended with exit code %d", l.name, l.moment.exitCode)
	}
	when := l.moment.started.Add(time.Duration(n) * time.Second)
	if n == 0 {
		return when, l.name + " started"
	}
	return when, fmt.Sprintf("%s has been running for %d s", l.name, n)
}

// Next returns the available lines. If there are none, Next waits for the next line, or until the run or the pod
// has ended.
func (l *lines) Next(ctx context.Context, wait bool) ([]logs.Line, error) {
	for l.next >= l.lineCount() {
		if !wait {
			return nil, io.EOF
		}
		if err := l.wait(ctx); err != nil {
			return nil, err
		}
	}
	var all []logs.Line
	for ; l.next < l.lineCount(); l.next++ {
		when, text := l.lineAt(l.next)
		all = append(all, logs.Line{At: when, Text: []byte(text + "\n")})
	}
	return all, nil
}

// wait waits for the next line; the end of the run or of the pod is io.EOF.
func (l *lines) wait(ctx context.Context) error {
	if _, over := l.endTime(); over || l.look == nil {
		return io.EOF
	}
	next, _ := l.lineAt(l.next)
	timer := time.NewTimer(max(0, time.Until(next)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.now = time.Now()
	m, ok := l.look(l.now)
	if !ok {
		return io.EOF
	}
	if m.run != l.moment.run {
		if m.last == nil {
			return io.EOF
		}
		m = *m.last
	}
	l.moment = m
	return nil
}
