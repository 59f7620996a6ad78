// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// oneTask is a fake service with one task.
type oneTask struct {
	services
	task types.Task
}

func (o oneTask) started(context.Context, string) ([]string, error) {
	return []string{*o.task.TaskArn}, nil
}

func (o oneTask) stopped(context.Context) ([]string, error) { return nil, nil }

func (o oneTask) describe(context.Context, []string) ([]types.Task, []string, error) {
	return []types.Task{o.task}, nil, nil
}

func (o oneTask) ping(context.Context) error { return nil }

// TestLearning checks that a round, a list and a queue all show that a task could not start because its secret
// was removed. Otherwise each later pod would use the missing secret. The news counts once: ECS shows the task
// for an hour, during which equal pods would share nothing.
func TestLearning(t *testing.T) {
	for way, learn := range map[string]func(p *driver) ([]types.Task, error){
		"a round": func(p *driver) ([]types.Task, error) { return p.Changed(t.Context(), time.Now()) },
		"a list":  func(p *driver) ([]types.Task, error) { return p.List(t.Context()) },
		"a queue": func(p *driver) ([]types.Task, error) { return nil, p.ask(t.Context(), []string{"arn:1"}) },
	} {
		p, _ := hearing(t)
		pod := podOf("a", program.Program{})
		task := types.Task{TaskArn: aws.String("arn:1"), LastStatus: aws.String("PENDING"), DesiredStatus: aws.String(stateRunning)}
		for key, value := range p.mapping.owner.Tags(identity.Of(pod)) {
			task.Tags = append(task.Tags, types.Tag{Key: &key, Value: &value})
		}
		p.kit.Cache().Accepted(pod, task)
		task.LastStatus, task.DesiredStatus, task.StopCode = aws.String("STOPPED"), aws.String("STOPPED"), types.TaskStopCodeTaskFailedToStart
		p.client = oneTask{task: task}
		for _, want := range []string{"", "arn:secret"} {
			p.made.set("vk-secret", "arn:secret")
			told, err := learn(p)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.made.get("vk-secret"); got != want {
				t.Errorf("%s: the secret is %q, want %q", way, got, want)
			}
			p.kit.Cache().Take(t.Context(), time.Now(), told...)
		}
	}
}

// TestTaskIsFound checks that a message of the queue makes a task known whose request had no answer.
func TestTaskIsFound(t *testing.T) {
	p, _ := hearing(t)
	pod := podOf("a", program.Program{})
	task := types.Task{TaskArn: aws.String("arn:1"), LastStatus: aws.String(stateRunning), DesiredStatus: aws.String(stateRunning)}
	for key, value := range p.mapping.owner.Tags(identity.Of(pod)) {
		task.Tags = append(task.Tags, types.Tag{Key: &key, Value: &value})
	}
	p.client = oneTask{task: task}
	err := p.ask(t.Context(), []string{"arn:1"})
	if _, _, known := p.kit.Cache().Get(pod.UID); err != nil || !known {
		t.Errorf("%v, and it is known: %t", err, known)
	}
}
