// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Failures are the watches that failed since the last check, each with its last error. A watch continues by
// itself, and does not report its recovery: a watch that may not list any more would show old objects for ever.
type Failures struct {
	mu  sync.Mutex
	all map[string]*failure // guarded by mu; by the watched kind
}

// failure distinguishes failures with the same error.
type failure struct{ err error }

// Note records why a list or a watch failed.
func (f *Failures) Note(of string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[string]*failure{}
	}
	f.all[of] = &failure{err}
}

// Of is why a list or a watch failed, nil if none did since it was looked at.
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

// Check lists the objects of failed watches, as the watch would, and returns the error of a failed list. It
// forgets failures after a successful list. At rest it sends no request.
func (f *Failures) Check(ctx context.Context, list func(ctx context.Context, of string, one metav1.ListOptions) error) error {
	f.mu.Lock()
	failed := maps.Clone(f.all)
	f.mu.Unlock()
	for _, of := range slices.Sorted(maps.Keys(failed)) {
		if err := list(ctx, of, metav1.ListOptions{Limit: 1}); err != nil {
			return err
		}
		f.mu.Lock()
		if f.all[of] == failed[of] { // the watch has not failed again meanwhile
			delete(f.all, of)
		}
		f.mu.Unlock()
	}
	return nil
}
