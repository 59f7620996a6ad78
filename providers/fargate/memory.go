// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
)

// goneAfter is how often in a row ECS must report a known task as missing until the pod is gone.
const goneAfter = 3

// inquiries records the requests for tasks.
type inquiries struct {
	mu sync.Mutex
	of map[string]*inquiry // guarded by mu; by ARN
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

// keep forgets all tasks but these.
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

// next returns the tasks that a round asks about: all tasks in transition, and as many others as fit into the
// same request, starting with the task whose last request is oldest. So a round at rest is one request, however
// many pods there are.
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

// atRest reports whether a task runs and is to run.
func atRest(t ecstypes.Task) bool {
	return aws.ToString(t.LastStatus) == stateRunning && aws.ToString(t.DesiredStatus) == stateRunning
}

// remembered is how many definitions, and how many secrets, are remembered, and rememberedFor how long. Others are
// looked for again.
const remembered, rememberedFor = 4096, 365 * 24 * time.Hour

// made records existing definitions and secrets, so that a replica costs no request for them.
type made struct {
	turn chan struct{} // held during a lookup or a create, so that many replicas cause only one

	shared *cache.LRUExpireCache // ARNs of definitions by family and of secrets by name, and the key of names
	own    *cache.LRUExpireCache // secrets of one pod, kept, by name
}

func newMade() made {
	return made{turn: make(chan struct{}, 1), shared: cache.NewLRUExpireCache(remembered), own: cache.NewLRUExpireCache(remembered)}
}

// kept is the last stored version of a secret of one pod.
type kept struct {
	text [sha256.Size]byte // the digest of its text
	arn  string
}

// mine returns the ARN of the secret of one pod: the known ARN if the text is the same, or the result of keep.
// Each keep makes a new version of the secret, and Secrets Manager allows a hundred versions.
func (m *made) mine(s secret, keep func() (string, error)) (string, error) {
	sum := sha256.Sum256([]byte(s.text))
	if known, ok := m.own.Get(s.name); ok && known.(kept).text == sum {
		return known.(kept).arn, nil
	}
	m.own.Remove(s.name) // after a failure, the stored text is unknown
	arn, err := keep()
	if err == nil {
		m.own.Add(s.name, kept{text: sum, arn: arn}, rememberedFor)
	}
	return arn, err
}

// lose drops the record of a removed definition or secret, so that it is looked for again.
func (m *made) lose(name string) {
	m.own.Remove(name)
	m.shared.Remove(name)
}

// withPrefix returns the names in a cache that have the prefix.
func withPrefix(in *cache.LRUExpireCache, prefix string) (names []string) {
	for _, key := range in.Keys() {
		if name := key.(string); strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}

// get returns the ARN of a name, or "" if it is not known.
func (m *made) get(name string) string {
	arn, _ := m.shared.Get(name)
	text, _ := arn.(string)
	return text
}

func (m *made) set(name, arn string) { m.shared.Add(name, arn, rememberedFor) }

// forget drops the records of all shared definitions and secrets, so that they are looked for again.
func (m *made) forget() { m.shared.RemoveAll(func(any) bool { return true }) }

// once returns the ARN of a name: the known ARN, or the result of find. Only one caller at a time runs find.
func (m *made) once(ctx context.Context, name string, find func() (string, error)) (string, error) {
	if arn := m.get(name); arn != "" {
		return arn, nil
	}
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if arn := m.get(name); arn != "" {
		return arn, nil
	}
	arn, err := find()
	if err == nil {
		m.set(name, arn)
	}
	return arn, err
}
