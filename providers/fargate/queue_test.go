// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// letters is a fake service with messages in its queue.
type letters struct {
	mu       sync.Mutex
	messages []message
	fails    error  // the error of requests about tasks
	refuses  string // the ARN of a task about which every request fails
	removed  []string
	closed   error      // of the queue
	reads    int        // the number of reads
	partly   bool       // every second answer has only some of the messages, as with SQS
	given    int        // the number of received messages
	asked    [][]string // the tasks of each request
}

// receive returns messages like SQS: at most ten, and each message only once until the test lets the queue
// forget that it was received.
func (l *letters) receive(ctx context.Context, seconds int) ([]message, error) {
	l.mu.Lock()
	l.reads++
	closed := l.closed
	l.mu.Unlock()
	if closed != nil {
		return nil, closed
	}
	for range 10 * seconds {
		if some := l.next(); len(some) > 0 {
			return some, nil
		}
		select {
		case <-time.After(time.Second / 10):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return l.next(), nil
}

func (l *letters) next() []message {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := queueBatch
	if l.partly && l.reads%2 == 0 {
		most = 3
	}
	some := l.messages[l.given:min(len(l.messages), l.given+most)]
	l.given += len(some)
	return slices.Clone(some)
}

// post puts a message into the queue, and sets the error of later requests to ECS.
func (l *letters) post(m message, fails error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.messages, l.fails = append(l.messages, m), fails
}

// refuse makes reads of the queue fail with the error.
func (l *letters) refuse(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = err
}

// received returns how often the queue is read within the given time.
func (l *letters) received(within time.Duration) int {
	l.mu.Lock()
	before := l.reads
	l.mu.Unlock()
	time.Sleep(within)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reads - before
}

// all returns the receipts of all removed messages.
func (l *letters) all() []string {
	_, removed := l.so()
	return removed
}

// followed reports whether the last removed message has this receipt.
func (l *letters) followed(receipt string) bool {
	_, removed := l.so()
	return len(removed) > 0 && removed[len(removed)-1] == receipt
}

// so returns the number of requests and the receipts of the removed messages.
func (l *letters) so() (int, []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.asked), slices.Clone(l.removed)
}

// transport returns the transport to the queue and to ECS.
func (l *letters) transport() answers {
	return answers{
		"ReceiveMessage": func(ctx context.Context, request []byte) (any, error) {
			var in struct{ WaitTimeSeconds int }
			if err := json.Unmarshal(request, &in); err != nil {
				return nil, err
			}
			messages, err := l.receive(ctx, in.WaitTimeSeconds)
			return map[string]any{"Messages": messages}, err
		},
		"DeleteMessageBatch": func(_ context.Context, request []byte) (any, error) {
			var in struct{ Entries []message }
			if err := json.Unmarshal(request, &in); err != nil {
				return nil, err
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			for _, m := range in.Entries {
				l.removed = append(l.removed, m.ReceiptHandle)
			}
			return map[string]any{}, nil
		},
		"DescribeTasks": func(_ context.Context, request []byte) (any, error) {
			var in struct{ Tasks []string }
			if err := json.Unmarshal(request, &in); err != nil {
				return nil, err
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.asked = append(l.asked, in.Tasks)
			if slices.Contains(in.Tasks, l.refuses) {
				return refusedWith("InvalidParameterException"), nil
			}
			failures := []any{}
			for _, arn := range in.Tasks {
				failures = append(failures, map[string]any{"arn": arn, "reason": "MISSING"})
			}
			return map[string]any{"failures": failures}, l.fails
		},
	}
}

// TestMessagesStayUntilTheyAreFollowed checks that a message is removed from the queue only after ECS has
// answered about its task. A message about a task of another node is removed at once.
func TestMessagesStayUntilTheyAreFollowed(t *testing.T) {
	p, _ := hearing(t)
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
		p.client.http.Transport = l.transport()
		if err := p.hear(t.Context(), new([]message)); !errors.Is(err, test.fails) || !slices.Equal(l.removed, test.want) {
			t.Errorf("ECS says %v: removed %v, %v, want %v", test.fails, l.removed, err, test.want)
		}
		l.messages, l.removed, l.given = l.messages[:1], nil, 0
		if err := p.hear(t.Context(), new([]message)); !errors.Is(err, test.fails) || (len(l.removed) == 0) != (test.fails != nil) {
			t.Errorf("ECS says %v of one message: removed %v, %v", test.fails, l.removed, err)
		}
	}
}

// hearing returns a provider with a queue, and a function that makes the message about a change of the
// provider's task.
func hearing(t *testing.T) (*driver, func(task int) message) {
	t.Helper()
	useKey(t)
	p, err := newDriver(t.Context(), cli.ProviderInput{NodeName: "node"}, testConfig(t, func(c *Config) { c.Queue = "https://sqs.example/1/tasks" }), quick)
	if err != nil {
		t.Fatal(err)
	}
	return p, func(task int) message {
		return message{ReceiptHandle: fmt.Sprint(task), Body: fmt.Sprintf(
			`{"source":"aws.ecs","detail-type":"ECS Task State Change","detail":{"taskArn":"arn:%03d","startedBy":%q}}`, task, p.mapping.startedBy())}
	}
}

// TestManyChangesAreOneRequest checks that all waiting messages make one request to ECS, which names each task
// once and keeps to the maximum number of tasks.
func TestManyChangesAreOneRequest(t *testing.T) {
	p, of := hearing(t)
	l := &letters{}
	p.client.http.Transport = l.transport()
	for i := range 2*batch + 25 {
		l.messages = append(l.messages, of(i/2))
	}
	for _, want := range []struct{ asked, removed int }{{batch / 2, batch}, {batch / 2, 2 * batch}, {13, 2*batch + 25}} {
		if err := p.hear(t.Context(), new([]message)); err != nil {
			t.Fatal(err)
		}
		if n := len(l.asked[len(l.asked)-1]); n != want.asked || len(l.removed) != want.removed {
			t.Errorf("asked about %d tasks, removed %d messages, want %+v", n, len(l.removed), want)
		}
	}
	if len(l.asked) != 3 {
		t.Errorf("%d requests, want 3", len(l.asked))
	}
}

// TestAnswersNeedNotBeFull checks that the queue is read until it is empty.
func TestAnswersNeedNotBeFull(t *testing.T) {
	p, of := hearing(t)
	l := &letters{partly: true}
	p.client.http.Transport = l.transport()
	for i := range 50 {
		l.messages = append(l.messages, of(i))
	}
	if err := p.hear(t.Context(), new([]message)); err != nil || len(l.removed) != 50 || len(l.asked) != 1 {
		t.Errorf("%d messages followed by %d requests, %v, want all by one", len(l.removed), len(l.asked), err)
	}
}

// TestChangesGather checks that a single change is followed at once, and that the changes after it are gathered
// into one request to ECS.
func TestChangesGather(t *testing.T) {
	p, of := hearing(t)
	synctest.Test(t, func(t *testing.T) {
		l := &letters{}
		p.client.http.Transport = l.transport()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { p.listen(ctx); close(done) }()
		time.Sleep(time.Minute + time.Second/20)
		l.post(of(0), nil)
		time.Sleep(time.Second / 10)
		if asked, _ := l.so(); asked != 1 {
			t.Errorf("%d requests, want one at once", asked)
		}
		for i := range 1000 { // 50 in a second
			l.post(of(i), nil)
			time.Sleep(time.Second / 50)
		}
		time.Sleep(2 * queuePace)
		if asked, removed := l.so(); len(removed) != 1001 || asked > 1+21*int(time.Second/queuePace) {
			t.Errorf("%d messages followed by %d requests in 21 s, want all, by one in %v", len(removed), asked, queuePace)
		}
		l.post(of(0), errdefs.RetryAfter(errors.New("too many"), 5*time.Second))
		time.Sleep(time.Second)
		l.post(of(1), nil)
		time.Sleep(5 * time.Second)
		if !l.followed("1") {
			t.Error("ECS was to be asked again after 5 s, and was not")
		}
		l.post(of(2000), errors.New("away"))
		time.Sleep(time.Second / 2)
		l.post(of(2001), nil)
		if time.Sleep(2 * time.Second); !l.followed("2001") || !slices.Contains(l.all(), "2000") {
			t.Errorf("one error that passes keeps changes for more than two seconds: %v were followed", l.all()[1000:])
		}
		l.refuse(errors.New("away"))
		time.Sleep(5 * time.Minute)
		if n := l.received(time.Minute); n > 3 {
			t.Errorf("a queue that fails for long is read %d times a minute", n)
		}
		cancel()
		<-done
	})
}

// TestChangesOfAnotherCluster checks that one ARN that ECS refuses does not block the other changes. A rule may
// send the changes of several clusters, and ECS refuses the whole request.
func TestChangesOfAnotherCluster(t *testing.T) {
	p, of := hearing(t)
	l := &letters{refuses: "arn:007"}
	p.client.http.Transport = l.transport()
	for i := range 50 {
		l.messages = append(l.messages, of(i))
	}
	other, same := of(50), of(51)
	other.Body = strings.Replace(other.Body, `"taskArn"`, `"clusterArn":"arn:aws:ecs:eu-central-1:1:cluster/other","taskArn"`, 1)
	same.Body = strings.Replace(same.Body, `"taskArn"`, `"clusterArn":"arn:aws:ecs:eu-central-1:1:cluster/`+last(p.config.Cluster)+`","taskArn"`, 1)
	l.messages = append(l.messages, other, same)
	if err := p.hear(t.Context(), new([]message)); err != nil || len(l.removed) != 52 {
		t.Errorf("%d messages removed, %v, want all", len(l.removed), err)
	}
	followed := map[string]bool{}
	for _, arns := range l.asked {
		if !slices.Contains(arns, l.refuses) {
			for _, arn := range arns {
				followed[arn] = true
			}
		}
	}
	if len(followed) != 50 || followed["arn:050"] || !followed["arn:051"] || len(l.asked) > 14 {
		t.Errorf("ECS told of %d tasks in %d requests, want all 50 of the cluster but one", len(followed), len(l.asked))
	}
}
