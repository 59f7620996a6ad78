// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
)

// GetContainerLogs returns the log of a container. CCI supports sinceSeconds, but not sinceTime, so
// GetContainerLogs drops the lines that are too old.
func (p *provider) GetContainerLogs(ctx context.Context, namespace, name, container string, o api.ContainerLogOpts) (io.ReadCloser, error) {
	if o.SinceTime.IsZero() || o.SinceSeconds > 0 {
		return p.Cluster.GetContainerLogs(ctx, namespace, name, container, o)
	}
	asked := api.ContainerLogOpts{Tail: o.Tail, Follow: o.Follow, Previous: o.Previous, Timestamps: true, SinceSeconds: secondsSince(o.SinceTime, time.Now())}
	log, err := p.Cluster.GetContainerLogs(ctx, namespace, name, container, asked)
	if err != nil {
		return nil, err
	}
	o.Tail = 0 // CCI has applied it
	return logs.NewReader(ctx, &stamped{log, bufio.NewReader(log)}, o, time.Now()), nil
}

// secondsSince returns the number of seconds from at to now, rounded up.
func secondsSince(at, now time.Time) int { return max(1, int(math.Ceil(now.Sub(at).Seconds()))) }

// stamped is a log with a time at the start of each line.
type stamped struct {
	io.Closer
	lines *bufio.Reader
}

// Next implements logs.Source.
func (s *stamped) Next(_ context.Context, _ bool) ([]logs.Line, error) {
	line, err := s.lines.ReadBytes('\n')
	if len(line) == 0 {
		return nil, err
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	stamp, text, found := bytes.Cut(line, []byte{' '})
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	if !found || err != nil { // messages of CCI itself have no timestamp
		return []logs.Line{{At: time.Now(), Text: line}}, nil
	}
	return []logs.Line{{At: at, Text: text}}, nil
}
