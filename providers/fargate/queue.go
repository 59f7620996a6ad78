// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	kwait "k8s.io/apimachinery/pkg/util/wait"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// queueWait is the number of seconds that SQS waits for a message before it returns none. queueBatch is the maximum number of
	// messages in an answer.
	queueWait, queueBatch = 20, 10
	// queuePause is the longest pause after a failure of the queue. The first pause is queuePace, and each
	// further one is twice as long.
	queuePause = 30 * time.Second
	// queuePace is the pause between two reads of the queue. Changes gather in the pause, so that one request to ECS covers many tasks:
	// ECS limits the rate of requests.
	queuePace = 500 * time.Millisecond
)

// change is a change of a task as EventBridge reports it. Only the fact of the change counts: the state comes
// from ECS.
type change struct {
	Source     string `json:"source"`
	DetailType string `json:"detail-type"`
	Detail     struct {
		TaskArn    string `json:"taskArn"`
		ClusterArn string `json:"clusterArn"`
		StartedBy  string `json:"startedBy"`
	} `json:"detail"`
}

// receive returns messages of a queue, or none after a wait of some seconds.
func (c *client) receive(ctx context.Context, queue string, seconds int) ([]message, error) {
	var out struct{ Messages []message }
	err := c.signed.json(ctx, "sqs", rootOf(queue), "AmazonSQS.ReceiveMessage", map[string]any{
		"QueueUrl": queue, "MaxNumberOfMessages": queueBatch, "WaitTimeSeconds": seconds,
	}, &out)
	return out.Messages, kind(err, "read the queue "+queue)
}

// done removes messages of a queue.
func (c *client) done(ctx context.Context, queue string, messages []message) error {
	for some := range slices.Chunk(messages, queueBatch) {
		var entries []map[string]string
		for i, m := range some {
			entries = append(entries, map[string]string{"Id": fmt.Sprint(i), "ReceiptHandle": m.ReceiptHandle})
		}
		err := c.signed.json(ctx, "sqs", rootOf(queue), "AmazonSQS.DeleteMessageBatch", map[string]any{"QueueUrl": queue, "Entries": entries}, nil)
		if err != nil {
			return kind(err, "remove messages of the queue "+queue)
		}
	}
	return nil
}

// listen describes tasks as soon as the queue reports a change, until ctx ends. If the queue fails, polling continues.
func (d *driver) listen(ctx context.Context) {
	var left []message
	wait, failed := queuePace, 0
	_ = kwait.DelayFunc(func() time.Duration { return wait }).Until(ctx, true, true, func(ctx context.Context) (bool, error) { // until ctx ends
		err := d.hear(ctx, &left)
		if err == nil {
			wait, failed = queuePace, 0
			return false, nil
		}
		if failed++; failed == 1 && ctx.Err() == nil {
			log.G(ctx).WithError(err).Warn("The queue does not tell changes of tasks; ECS is asked all the same")
		}
		after, _ := errdefs.RetryAfterOf(err)
		wait = max(after, min(queuePace<<min(failed-1, 8), queuePause))
		return false, nil
	})
}

// hear receives messages for as many tasks as one request can describe. If the request to ECS fails, hear
// leaves the messages of its tasks for the next call, which describes these tasks alone. If there is no next
// call, the queue delivers the messages again.
func (d *driver) hear(ctx context.Context, left *[]message) error {
	messages, err := *left, error(nil)
	if len(messages) == 0 {
		messages, err = d.client.receive(ctx, d.config.Queue, queueWait)
		// After a full answer there are more messages. The next answer may not be full, because SQS queries only some of its servers.
		for more := messages; err == nil && len(more) > 0 && len(messages) >= queueBatch && len(messages)+queueBatch <= batch; {
			more, err = d.client.receive(ctx, d.config.Queue, 0)
			messages = append(messages, more...)
		}
	}
	*left = nil
	var arns []string
	var ours, done []message
	for _, m := range messages {
		if arn := d.changedTask(m); arn != "" {
			arns, ours = append(arns, arn), append(ours, m)
		} else {
			done = append(done, m)
		}
	}
	slices.Sort(arns)
	if asked := d.ask(ctx, slices.Compact(arns)); asked == nil {
		done = messages
	} else {
		*left, err = ours, errors.Join(err, asked)
	}
	if len(done) > 0 {
		err = errors.Join(err, d.client.done(ctx, d.config.Queue, done))
	}
	return err
}

// changedTask returns the ARN of the task of this node in a message, or "" if the message is not about this
// node. Other nodes have rules too, and one rule may cover several clusters. Messages for others are only
// removed.
func (d *driver) changedTask(m message) string {
	var c change
	if json.Unmarshal([]byte(m.Body), &c) != nil || c.Source != "aws.ecs" || c.DetailType != "ECS Task State Change" || c.Detail.StartedBy != d.mapping.startedBy() {
		return ""
	}
	if name := last(c.Detail.ClusterArn); name != "" && name != last(d.config.Cluster) {
		return ""
	}
	return c.Detail.TaskArn
}

// ask describes tasks in one request. If ECS refuses the request, one ARN may be the cause, and ECS will always refuse
// it. So ask halves the list until only that ARN is left out.
func (d *driver) ask(ctx context.Context, arns []string) error {
	err := d.askTogether(ctx, arns)
	switch {
	case !errdefs.IsInvalidInput(err):
		return err
	case len(arns) == 1:
		log.G(ctx).WithError(err).Warn("A change that the queue told of is passed over")
		return nil
	}
	half := len(arns) / 2
	return errors.Join(d.ask(ctx, arns[:half]), d.ask(ctx, arns[half:]))
}

// askTogether describes tasks in one request, and describes tasks again for which the cache kept another
// state.
func (d *driver) askTogether(ctx context.Context, arns []string) error {
	for try := 0; try < 3 && len(arns) > 0; try++ {
		at := time.Now()
		tasks, missing, err := d.describe(ctx, arns)
		if err != nil {
			d.kit.Cache().Hurry()
			return err
		}
		d.inquiries.note(at, tasks, missing)
		d.learn(tasks)
		d.kit.Cache().Take(ctx, at, tasks...)
		arns = nil
		for _, t := range tasks {
			if d.passedBy(t) {
				arns = append(arns, aws.ToString(t.TaskArn))
			}
		}
	}
	return nil
}

// passedBy reports whether the cache ignored the state of a task. It does so if the answer of RunTask came after the request, and so
// counts as newer.
func (d *driver) passedBy(t types.Task) bool {
	id, _ := d.Identify(t)
	_, have, ok := d.kit.Cache().Get(id.UID)
	return ok && aws.ToString(have.TaskArn) == id.ID && aws.ToString(have.LastStatus) != aws.ToString(t.LastStatus)
}
