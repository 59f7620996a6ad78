// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// doubts are the pods whose create has ended so that nobody knows whether there is a job.
type doubts struct {
	mu  sync.Mutex
	all map[types.UID]doubt // guarded by mu
}

// doubt is when a create ended, and how.
type doubt struct {
	at  time.Time
	err error
}

// doubtful is whether a create that failed may have made a job: nothing answered, a server that has failed, or one that says that all is
// well in another way than the protocol.
func doubtful(err error) bool {
	var answer *answerError
	return !errors.As(err, &answer) || answer.code/100 == 2 || answer.code >= http.StatusInternalServerError
}

// add takes a create down, and lets go of those that are long over.
func (d *doubts) add(uid types.UID, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for other, k := range d.all {
		if time.Since(k.at) > unseenFor {
			delete(d.all, other)
		}
	}
	if d.all == nil {
		d.all = map[types.UID]doubt{}
	}
	d.all[uid] = doubt{time.Now(), err}
}

// clear is when the pod was seen.
func (d *doubts) clear(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, uid)
}

// check is an error while an answer without a pod is no proof that there is no job: a plugin may take its time to tell of one.
func (d *doubts) check(uid types.UID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	k, ok := d.all[uid]
	left := unseenFor - time.Since(k.at)
	if !ok || left <= 0 {
		return nil
	}
	return errdefs.RetryAfter(fmt.Errorf("whether there is a job is not known for another %s: %w", left.Round(time.Second), errText{k.err}), afterDoubt)
}

// begins notes when the first question about a pod was asked.
func (p *provider) begins() { p.begin.Do(func() { p.began = time.Now() }) }

// early returns an error while an answer without a pod does not prove that there is no job. The process before this one may have submitted a pod
// that was bound before this process began, and interLink's Slurm plugin repeats an earlier answer, which may be about other pods only. A pod
// without an age is new.
func (p *provider) early(pod *corev1.Pod) error {
	p.begins()
	left := keptFor - time.Since(p.began)
	if bound := boundAt(pod); p.client.denies.Load() || bound.IsZero() || bound.After(p.began) || left <= 0 {
		return nil
	}
	return errdefs.RetryAfter(fmt.Errorf("whether an earlier process has submitted the pod is not known for another %s", left.Round(time.Second)), min(left, afterDoubt))
}

// boundAt returns when a pod got its node, or when it was created if it does not tell.
func boundAt(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}

// errText has the words of an error without its kind.
type errText struct{ err error }

// Error implements error.
func (e errText) Error() string { return e.err.Error() }
