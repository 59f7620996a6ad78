// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"
)

// pollInterval is the interval of requests to the node for data without a watch.
const pollInterval = 250 * time.Millisecond

func newClient(kubeconfig string) (*kubernetes.Clientset, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("load the kubeconfig of the suite: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the client of the suite: %w", err)
	}
	return client, nil
}

func (s *EndToEndTestSuite) newClient(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	client, err := s.connect()
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// expectation is a condition for objects of type T.
type expectation[T runtime.Object] struct {
	kind      T // an empty object
	resource  string
	namespace string
	selector  fields.Selector
	// what is the end of the sentence "wait until".
	what string
	// done reports whether an object fulfils the expectation.
	done func(T) bool
	// state describes the progress of the last seen object, or of nil.
	state func(last T) string
}

// waitFor watches objects until an object fulfils the expectation, and returns that object. If that takes too long, the
// test ends.
func waitFor[T runtime.Object](s *EndToEndTestSuite, t *testing.T, e expectation[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.config.WatchTimeout)
	defer cancel()
	var last T
	seen := func(event watch.Event) (bool, error) {
		object, ok := event.Object.(T)
		if !ok || event.Type == watch.Deleted {
			return false, nil
		}
		last = object
		return e.done(object), nil
	}
	lw := cache.NewListWatchFromClient(s.newClient(t).CoreV1().RESTClient(), e.resource, e.namespace, e.selector)
	if _, err := watchtools.UntilWithSync(ctx, lw, e.kind, nil, seen); err != nil {
		t.Fatalf("wait until %s: %v; %s", e.what, err, e.state(last))
	}
	return last
}

// awaitCheck repeats check until it returns nil. It is for data from the node over HTTP, because such data
// cannot be watched.
func (s *EndToEndTestSuite) awaitCheck(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	last := errors.New("not asked yet")
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, s.config.WatchTimeout, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if err == nil || ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("wait until %s: %v; at last: %v", what, err, last)
	}
}
