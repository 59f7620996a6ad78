// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	k8stypes "k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// followEvery is the interval of requests for a log that is followed.
const followEvery = time.Second

// Logs implements service.LogReader. All runs of a container share one log, because ECS does not separate them.
func (d *driver) Logs(ctx context.Context, of service.Target[types.Task], opts api.ContainerLogOpts) (io.ReadCloser, error) {
	switch {
	case opts.Previous:
		return nil, errdefs.NotFound("ECS does not tell its runs apart: the log without --previous has all of them")
	case d.config.LogGroup == "":
		return nil, errdefs.InvalidInput("there is none: name a group of CloudWatch Logs in logGroup of this node's configuration")
	}
	arn := aws.ToString(of.Instance.TaskArn)
	now := time.Now()
	s := &stream{driver: d, uid: of.Pod.UID, container: of.Container, name: streamPrefix + "/" + of.Container + "/" + last(arn)}
	switch {
	case !opts.SinceTime.IsZero():
		s.since = opts.SinceTime
	case opts.SinceSeconds > 0:
		s.since = now.Add(-time.Duration(opts.SinceSeconds) * time.Second)
	}
	return logs.NewReader(ctx, s, opts, now), nil
}

// stream is the log of a container.
type stream struct {
	driver          *driver
	uid             k8stypes.UID
	container, name string
	since           time.Time
	token           string
}

// Next implements logs.Source.
func (s *stream) Next(ctx context.Context, wait bool) ([]logs.Line, error) {
	for {
		over := s.over() // read before the lines, so that the lines include everything written until then
		lines, token, err := s.driver.client.log(ctx, s.driver.config.LogGroup, s.name, s.token, s.since)
		if err != nil && !errdefs.IsNotFound(err) { // the first line creates the stream
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

// over reports whether the log is complete: the container or its task has ended, or the task is unknown.
func (s *stream) over() bool {
	_, t, ok := s.driver.kit.Cache().Get(s.uid)
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

// keepsForEver reports whether a group of logs has no retention. It returns false for a group that does not
// exist or that this process may not read: there is nothing to advise.
func (c *client) keepsForEver(ctx context.Context, group string) bool {
	out, err := c.logs.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: &group}) // in the order of names
	return err == nil && len(out.LogGroups) > 0 && aws.ToString(out.LogGroups[0].LogGroupName) == group && out.LogGroups[0].RetentionInDays == nil
}

// log returns the lines of a stream from a token on, and the token for the next lines. At the end of the stream,
// the token stays the same.
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
