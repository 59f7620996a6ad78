// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
)

const (
	// streamPrefix begins the names of log streams: prefix/container/task.
	streamPrefix = "vk"
	// followEvery is how often a log that is followed is asked for.
	followEvery = time.Second
)

// GetContainerLogs implements nodeutil.Provider. All runs of a container are in one log: ECS does not tell them apart.
func (p *provider) GetContainerLogs(ctx context.Context, namespace, name, container string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	if err := p.cache.Wait(ctx); err != nil {
		return nil, fmt.Errorf("log of pod %s/%s: %w", namespace, name, err)
	}
	pod, task, err := p.cache.Find(namespace, name)
	if err != nil {
		return nil, err
	}
	switch {
	case !has(pod, task, container):
		return nil, errdefs.NotFoundf("pod %s/%s has no container %s", namespace, name, container)
	case opts.Previous:
		return nil, errdefs.NotFoundf("container %s of pod %s/%s: ECS does not tell its runs apart: the log without --previous has all of them", container, namespace, name)
	case p.config.LogGroup == "":
		return nil, errdefs.InvalidInputf("pod %s/%s has no log: name a group of CloudWatch Logs in logGroup of this node's configuration", namespace, name)
	}
	arn := aws.ToString(task.TaskArn)
	now := time.Now()
	s := &stream{provider: p, pod: pod, container: container, name: streamPrefix + "/" + container + "/" + arn[strings.LastIndex(arn, "/")+1:]}
	switch {
	case !opts.SinceTime.IsZero():
		s.since = opts.SinceTime
	case opts.SinceSeconds > 0:
		s.since = now.Add(-time.Duration(opts.SinceSeconds) * time.Second)
	}
	return logs.NewReader(ctx, s, opts, now), nil
}

// has reports whether a pod has a container: its spec may not be known yet after a restart.
func has(pod *corev1.Pod, t types.Task, container string) bool {
	for c := range containersOf(&pod.Spec) {
		if c.Name == container {
			return true
		}
	}
	for _, k := range t.Containers {
		if aws.ToString(k.Name) == container {
			return true
		}
	}
	return false
}

// stream is the log of a container.
type stream struct {
	provider        *provider
	pod             *corev1.Pod
	container, name string
	since           time.Time
	token           string
}

// Next implements logs.Source.
func (s *stream) Next(ctx context.Context, wait bool) ([]logs.Line, error) {
	for {
		over := s.over() // asked before the lines: what is written until then is among them
		lines, token, err := s.provider.service.log(ctx, s.provider.config.LogGroup, s.name, s.token, s.since)
		if err != nil && !errdefs.IsNotFound(err) { // a stream is made with the first line
			return nil, err
		}
		end := token == s.token || err != nil
		if token != "" {
			s.token = token
		}
		switch {
		case len(lines) > 0:
			return lines, nil
		case end && (over || !wait):
			return nil, io.EOF
		case !end:
			continue
		}
		timer := time.NewTimer(followEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

// over reports whether nothing more is written.
func (s *stream) over() bool {
	_, t, ok := s.provider.cache.Get(s.pod.UID)
	if !ok || ended(t) {
		return true
	}
	for _, k := range t.Containers {
		if aws.ToString(k.Name) == s.container && aws.ToString(k.LastStatus) == stateStopped {
			return true
		}
	}
	return false
}

// log returns the lines of a stream from a token on, and the token for what comes next: the same one is its end.
func (c *client) log(ctx context.Context, group, name, token string, since time.Time) ([]logs.Line, string, error) {
	in := &cloudwatchlogs.GetLogEventsInput{LogGroupName: &group, LogStreamName: &name, StartFromHead: aws.Bool(true)}
	if token != "" {
		in.NextToken = &token
	}
	if !since.IsZero() {
		in.StartTime = aws.Int64(since.UnixMilli())
	}
	out, err := c.logs.GetLogEvents(ctx, in)
	if err != nil {
		return nil, "", kind(err, "read the log "+group+" "+name)
	}
	lines := make([]logs.Line, 0, len(out.Events))
	for _, e := range out.Events {
		lines = append(lines, logs.Line{At: time.UnixMilli(aws.ToInt64(e.Timestamp)), Text: []byte(aws.ToString(e.Message) + "\n")})
	}
	if out.NextForwardToken == nil {
		return nil, "", errors.New("read the log " + group + " " + name + ": CloudWatch Logs returned no token")
	}
	return lines, *out.NextForwardToken, nil
}
