// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
)

// goneAfter is the number of consecutive answers without a known task after which its pod counts as gone.
const goneAfter = 3

// inquiries records the requests for tasks.
type inquiries struct {
	mu sync.Mutex
	of map[string]*inquiry // guarded by mu; keyed by ARN
}

// inquiry records the last request for a task, and its result.
type inquiry struct {
	at      time.Time
	missing int  // answers in a row without this task
	foreign bool // the task has ended, and belongs to no pod of this node
	left    bool // the task has ended, and resources of its pod remain to be removed
}

// set changes the record of a task, and returns the record before the change.
func (q *inquiries) set(arn string, change func(*inquiry)) (before inquiry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of == nil {
		q.of = map[string]*inquiry{}
	}
	if q.of[arn] == nil {
		q.of[arn] = &inquiry{}
	}
	before = *q.of[arn]
	change(q.of[arn])
	return before
}

// get returns the record of a task.
func (q *inquiries) get(arn string) inquiry { return q.set(arn, func(*inquiry) {}) }

// keep drops the records of all other tasks.
func (q *inquiries) keep(there map[string]bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for arn := range q.of {
		if !there[arn] {
			delete(q.of, arn)
		}
	}
}

// note records an answer of ECS, and returns the tasks that ECS has reported as missing several times in a row.
func (q *inquiries) note(at time.Time, tasks []ecstypes.Task, missing []string) (gone []string) {
	for _, t := range tasks {
		q.set(aws.ToString(t.TaskArn), func(i *inquiry) { i.at, i.missing = at, 0 })
	}
	for _, arn := range missing {
		if q.set(arn, func(i *inquiry) { i.at, i.missing = at, i.missing+1 }).missing+1 >= goneAfter {
			gone = append(gone, arn)
		}
	}
	return gone
}

// next returns the tasks to describe in a round: all tasks in transition, and as many others as fit into the same request, starting
// with the task whose last request is oldest. So a round without transitions is one request, however many pods there are.
func (q *inquiries) next(all []poll.Known[ecstypes.Task]) []string {
	var moving, others []string
	asked := map[string]time.Time{}
	for _, k := range all {
		arn := aws.ToString(k.Instance.TaskArn)
		i := q.get(arn)
		switch asked[arn] = i.at; {
		case ended(k.Instance):
		case k.Stopping || i.missing > 0 || !atRest(k.Instance):
			moving = append(moving, arn)
		default:
			others = append(others, arn)
		}
	}
	slices.SortStableFunc(others, func(a, b string) int { return cmp.Or(asked[a].Compare(asked[b]), cmp.Compare(a, b)) })
	room := (batch - len(moving)%batch) % batch
	if len(moving) == 0 {
		room = batch
	}
	return append(moving, others[:min(room, len(others))]...)
}

// atRest reports whether a task runs and should keep running.
func atRest(t ecstypes.Task) bool {
	return aws.ToString(t.LastStatus) == stateRunning && aws.ToString(t.DesiredStatus) == stateRunning
}
