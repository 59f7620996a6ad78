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

// early is an error while an answer without a pod is no proof that there is no job: the process before this one may have submitted a pod that
// is older than this process, and the plugin may give an answer again that it gave before, as interLink's Slurm plugin does. A pod that tells no
// age is new.
func (p *provider) early(pod *corev1.Pod) error {
	p.begins()
	left := keptFor - time.Since(p.began)
	if made := pod.CreationTimestamp.Time; !p.client.keeps.Load() || made.IsZero() || made.After(p.began) || left <= 0 {
		return nil
	}
	return errdefs.RetryAfter(fmt.Errorf("whether an earlier process has submitted the pod is not known for another %s", left.Round(time.Second)), min(left, afterDoubt))
}

// errText has the words of an error without its kind.
type errText struct{ err error }

// Error implements error.
func (e errText) Error() string { return e.err.Error() }
