// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// answers is a fake transport. It has the answers of AWS by the operation of a request, in the form of the JSON protocols.
type answers map[string]func(ctx context.Context, request []byte) (any, error)

// refusedWith is an answer that refuses a request with this code.
type refusedWith string

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	defer r.Body.Close()
	request, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	answer, err := a[operation](r.Context(), request)
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	if code, refused := answer.(refusedWith); refused {
		status, answer = http.StatusBadRequest, map[string]any{"__type": code, "message": "no"}
	}
	body, err := json.Marshal(answer)
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.1"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, err
}

// oneTask returns a fake ECS with one task.
func oneTask(task types.Task) answers {
	tags := []any{}
	for _, tag := range task.Tags {
		tags = append(tags, map[string]any{"key": tag.Key, "value": tag.Value})
	}
	described := map[string]any{"taskArn": task.TaskArn, "lastStatus": task.LastStatus, "desiredStatus": task.DesiredStatus, "stopCode": task.StopCode, "startedBy": task.StartedBy, "group": task.Group, "tags": tags}
	return answers{
		"ListTasks": func(_ context.Context, request []byte) (any, error) {
			if !bytes.Contains(request, []byte("startedBy")) {
				return map[string]any{}, nil // no task is stopping
			}
			return map[string]any{"taskArns": []any{task.TaskArn}}, nil
		},
		"DescribeClusters": func(context.Context, []byte) (any, error) {
			return map[string]any{"clusters": []any{map[string]any{"status": "ACTIVE"}}}, nil
		},
		"DescribeTasks": func(context.Context, []byte) (any, error) { return map[string]any{"tasks": []any{described}}, nil },
	}
}

// TestLearning checks that a round, a list and a queue all show that a task could not start because its secret was removed. Otherwise
// each later pod would use the missing secret. The failure counts once: ECS shows the task for an hour, during which equal pods would
// share nothing.
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
		p.client.http.Transport = oneTask(task)
		for _, want := range []string{"", "arn:secret"} {
			p.things.set("vk-secret", func(one *thing) { one.arn = "arn:secret" })
			told, err := learn(p)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.things.get("vk-secret").arn; got != want {
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
	p.client.http.Transport = oneTask(task)
	err := p.ask(t.Context(), []string{"arn:1"})
	if _, _, known := p.kit.Cache().Get(pod.UID); err != nil || !known {
		t.Errorf("%v, and it is known: %t", err, known)
	}
}
