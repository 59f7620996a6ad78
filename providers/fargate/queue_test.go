// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
)

// letters is a service with messages in its queue.
type letters struct {
	service
	messages []message
	fails    error // of what is asked about tasks
	removed  []string
}

func (l *letters) receive(context.Context, string) ([]message, error) { return l.messages, nil }

func (l *letters) describe(context.Context, []string) ([]types.Task, []string, error) {
	return nil, nil, l.fails
}

func (l *letters) done(_ context.Context, _ string, messages []message) error {
	for _, m := range messages {
		l.removed = append(l.removed, m.ReceiptHandle)
	}
	return nil
}

// TestMessagesStayUntilTheyAreFollowed: a change is removed from the queue when ECS has said what it is, and what is none of this node's at once.
func TestMessagesStayUntilTheyAreFollowed(t *testing.T) {
	useKey(t)
	p, err := newProvider(t.Context(), cli.ProviderInput{NodeName: "node"}, testConfig(t, func(c *Config) { c.Queue = "https://sqs.example/1/tasks" }), quick)
	if err != nil {
		t.Fatal(err)
	}
	of := func(by string) string {
		return fmt.Sprintf(`{"source":"aws.ecs","detail-type":"ECS Task State Change","detail":{"taskArn":"arn:1","startedBy":%q}}`, by)
	}
	away := errors.New("away")
	for _, test := range []struct {
		fails error
		want  []string
	}{{away, []string{"strange", "text"}}, {nil, []string{"ours", "strange", "text"}}} {
		l := &letters{fails: test.fails, messages: []message{
			{Body: of(p.mapping.startedBy()), ReceiptHandle: "ours"}, {Body: of("vk-other"), ReceiptHandle: "strange"}, {Body: "no JSON", ReceiptHandle: "text"},
		}}
		p.service = l
		if err := p.hear(t.Context()); !errors.Is(err, test.fails) || !slices.Equal(l.removed, test.want) {
			t.Errorf("ECS says %v: removed %v, %v, want %v", test.fails, l.removed, err, test.want)
		}
		l.messages, l.removed = l.messages[:1], nil
		if err := p.hear(t.Context()); !errors.Is(err, test.fails) || (len(l.removed) == 0) != (test.fails != nil) {
			t.Errorf("ECS says %v of one message: removed %v, %v", test.fails, l.removed, err)
		}
	}
}
