// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

// oneTask is a service that has one task.
type oneTask struct {
	service
	task types.Task
}

func (o oneTask) started(context.Context, string) ([]string, error) {
	return []string{*o.task.TaskArn}, nil
}

func (o oneTask) stopped(context.Context) ([]string, error) { return nil, nil }

func (o oneTask) describe(context.Context, []string) ([]types.Task, []string, error) {
	return []types.Task{o.task}, nil, nil
}

// TestLearning: that a task could not start, as somebody has removed a secret, and that there is a task whose request had no answer, is learned from
// a round, from a list and from a queue. Without it, each later pod has the secret that is not there.
func TestLearning(t *testing.T) {
	for way, learn := range map[string]func(p *provider) error{
		"a round": func(p *provider) error { _, err := p.changed(t.Context(), time.Now()); return err },
		"a list":  func(p *provider) error { _, err := p.list(t.Context()); return err },
		"a queue": func(p *provider) error { return p.ask(t.Context(), []string{"arn:1"}) },
	} {
		p, _ := hearing(t)
		pod := identity.Pod{Namespace: "ns", Name: "a", UID: "u"}
		task := types.Task{
			TaskArn: aws.String("arn:1"), LastStatus: aws.String("STOPPED"), DesiredStatus: aws.String("STOPPED"), StopCode: types.TaskStopCodeTaskFailedToStart,
		}
		for key, value := range p.mapping.owner.Tags(pod) {
			task.Tags = append(task.Tags, types.Tag{Key: &key, Value: &value})
		}
		p.service = oneTask{task: task}
		p.made.set("vk-secret", "arn:secret")
		p.watch.doubt("u")
		if err := learn(p); err != nil {
			t.Fatal(err)
		}
		if p.made.get("vk-secret") != "" || p.watch.doubted("u") {
			t.Errorf("%s: the secret is still %q, and the task is in doubt: %t", way, p.made.get("vk-secret"), p.watch.doubted("u"))
		}
	}
}
