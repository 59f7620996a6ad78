// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Failures records the watches that failed since the last check, each with its last error. A reflector retries by
// itself and does not report its recovery, so without Failures a watch that can no longer list would serve stale
// objects unnoticed.
type Failures struct {
	mu  sync.Mutex
	all map[string]*failure // guarded by mu; keyed by the watched kind
}

// failure is a pointer type, to distinguish failures with the same error.
type failure struct{ err error }

// Note records the error of a list or watch.
func (f *Failures) Note(of string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[string]*failure{}
	}
	f.all[of] = &failure{err}
}

// Of returns the last error of a list or watch, or nil if none failed since the last successful Check.
func (f *Failures) Of(of string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if failed := f.all[of]; failed != nil {
		return failed.err
	}
	return nil
}

// Any returns the error of any failed watch, or nil.
func (f *Failures) Any() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, failed := range f.all {
		return failed.err
	}
	return nil
}

// Check repeats the lists of failed watches, and returns the error of the first that fails. After a successful
// list it forgets the failure. Without failures it sends no request.
func (f *Failures) Check(ctx context.Context, list func(ctx context.Context, of string, one metav1.ListOptions) error) error {
	f.mu.Lock()
	failed := maps.Clone(f.all)
	f.mu.Unlock()
	for _, of := range slices.Sorted(maps.Keys(failed)) {
		if err := list(ctx, of, metav1.ListOptions{Limit: 1}); err != nil {
			return err
		}
		f.mu.Lock()
		if f.all[of] == failed[of] { // the watch has not failed again
			delete(f.all, of)
		}
		f.mu.Unlock()
	}
	return nil
}
