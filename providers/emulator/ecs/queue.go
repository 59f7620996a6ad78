// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// queueName is the name of the queue of SQS, and mostMessages is the maximum number of messages.
const (
	queueName    = "tasks"
	mostMessages = 10000
)

// queue has the changes of tasks that a rule of EventBridge sends. The mutex of the server guards it.
type queue struct {
	messages []*letter
	last     int
	more     chan struct{} // holds a value if a message has arrived
}

type letter struct {
	receipt, body string
	hidden        time.Time // until this time
	given         int       // number of deliveries
}

// sendState sends the state of a task if it has changed. The caller holds s.mu.
func (s *Server) sendState(t *task) {
	if s.tasks[t.id] == nil {
		return
	}
	shown := s.showTask(t, false)
	state := []any{shown["lastStatus"], shown["desiredStatus"]}
	for _, c := range shown["containers"].([]any) {
		one := c.(map[string]any)
		state = append(state, one["lastStatus"], one["healthStatus"])
	}
	said := fmt.Sprint(state)
	if said == t.said {
		return
	}
	t.said = said
	detail := map[string]any{}
	for name, value := range shown {
		if seconds, ok := value.(float64); ok && strings.HasSuffix(name, "At") {
			value = time.UnixMilli(int64(seconds * 1000)).UTC().Format(time.RFC3339Nano) // events have times as strings
		}
		detail[name] = value
	}
	body, err := json.Marshal(map[string]any{
		"version": "0", "source": "aws.ecs", "detail-type": "ECS Task State Change", "account": s.config.Account, "region": s.config.Region,
		"time": time.Now().UTC().Format(time.RFC3339), "resources": []string{t.arn}, "detail": detail,
	})
	if err != nil {
		return // the map has only strings and numbers
	}
	q := &s.queue
	if q.last++; len(q.messages) < mostMessages {
		q.messages = append(q.messages, &letter{receipt: "receipt-" + strconv.Itoa(q.last), body: string(body)})
	}
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// queueOf refuses an unknown queue.
func (s *Server) queueOf(url string) error {
	if !strings.HasSuffix(url, "/"+s.config.Account+"/"+queueName) {
		return refusal{"com.amazonaws.sqs#QueueDoesNotExist", "The specified queue does not exist."}
	}
	return nil
}

// receiveMessage waits for messages. The caller does not hold s.mu.
func (s *Server) receiveMessage(ctx context.Context, body []byte) (any, error) {
	var in struct {
		QueueURL                             string
		MaxNumberOfMessages, WaitTimeSeconds int
		VisibilityTimeout                    *int
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if err := s.queueOf(in.QueueURL); err != nil {
		return nil, err
	}
	if in.MaxNumberOfMessages < 0 || in.MaxNumberOfMessages > 10 || in.WaitTimeSeconds < 0 || in.WaitTimeSeconds > 20 {
		return nil, refusal{"InvalidParameterValue", "want at most 10 messages within at most 20 s"}
	}
	hide := 30 * time.Second
	if in.VisibilityTimeout != nil {
		hide = time.Duration(*in.VisibilityTimeout) * time.Second
	}
	over := time.NewTimer(time.Duration(in.WaitTimeSeconds) * time.Second)
	defer over.Stop()
	for {
		s.mu.Lock()
		found := []map[string]string{}
		for _, m := range s.queue.messages {
			if len(found) < max(1, in.MaxNumberOfMessages) && time.Now().After(m.hidden) {
				m.hidden = time.Now().Add(hide)
				m.given++
				found = append(found, map[string]string{"MessageId": m.receipt, "ReceiptHandle": m.receipt, "Body": m.body})
			}
		}
		s.mu.Unlock()
		if len(found) > 0 {
			return map[string]any{"Messages": found}, nil
		}
		select {
		case <-s.queue.more:
		case <-over.C:
			return map[string]any{}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Server) deleteMessageBatch(body []byte) (any, error) {
	var in struct {
		QueueURL string
		Entries  []struct{ ID, ReceiptHandle string }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if err := s.queueOf(in.QueueURL); err != nil {
		return nil, err
	}
	if len(in.Entries) == 0 || len(in.Entries) > 10 {
		return nil, refusal{"com.amazonaws.sqs#TooManyEntriesInBatchRequest", "want 1 to 10 entries"}
	}
	done, failed := []any{}, []any{}
	for _, e := range in.Entries {
		at := -1
		for i, m := range s.queue.messages {
			if m.receipt == e.ReceiptHandle {
				at = i
			}
		}
		if at < 0 {
			failed = append(failed, map[string]any{"Id": e.ID, "Code": "ReceiptHandleIsInvalid", "SenderFault": true})
			continue
		}
		s.queue.messages = append(s.queue.messages[:at], s.queue.messages[at+1:]...)
		done = append(done, map[string]string{"Id": e.ID})
	}
	return map[string]any{"Successful": done, "Failed": failed}, nil
}

// getQueueAttributes returns the ARN of a queue, whichever attributes the request names.
func (s *Server) getQueueAttributes(body []byte) (any, error) {
	var in struct{ QueueURL string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if err := s.queueOf(in.QueueURL); err != nil {
		return nil, err
	}
	return map[string]any{"Attributes": map[string]string{"QueueArn": s.arnOf("sqs", queueName)}}, nil
}

// Given returns the number of deliveries of the waiting messages, for tests.
func (s *Server) Given() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.queue.messages {
		n += m.given
	}
	return n
}

// Queued returns the number of waiting messages, for tests.
func (s *Server) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue.messages)
}
