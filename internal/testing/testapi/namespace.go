// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	namespaceTimeout = time.Minute
	cleanupTimeout   = 10 * time.Second
)

// Namespace makes a namespace for one test and returns its name. Its default service account is
// there, so pods can be created. It is cleared at the test's end, see [API.Clear]; the test does not wait for that.
func (a *API) Namespace(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), namespaceTimeout)
	defer cancel()
	ns, err := a.Client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	t.Cleanup(func() { a.cleanUp(t, ns.Name) })
	if a.cluster != nil && a.cluster.options.NoControllerManager {
		sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		_, err = a.Client.CoreV1().ServiceAccounts(ns.Name).Create(ctx, sa, metav1.CreateOptions{})
	} else {
		err = a.awaitServiceAccount(ctx, ns.Name)
	}
	if err != nil {
		t.Fatalf("make the default service account of namespace %s: %v", ns.Name, err)
	}
	return ns.Name
}

func (a *API) awaitServiceAccount(ctx context.Context, namespace string) error {
	// A watch without a resource version begins with the existing objects.
	w, err := a.Client.CoreV1().ServiceAccounts(namespace).Watch(ctx,
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "default").String()})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	return awaitEvent(ctx, w, func(watch.Event) bool { return true })
}

// awaitEvent returns when an object in the watch fulfils the condition.
func awaitEvent(ctx context.Context, w watch.Interface, done func(watch.Event) bool) error {
	defer w.Stop()
	for {
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				return fmt.Errorf("the watch ended: %w", context.Cause(ctx))
			}
			if event.Type == watch.Error {
				return fmt.Errorf("watch: %w", apierrors.FromObject(event.Object))
			}
			if done(event) {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// cleanUp logs its failures in the test's log: the test may have ended its API server.
func (a *API) cleanUp(t testing.TB, namespace string) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	if err := a.Clear(ctx, namespace); err != nil {
		t.Logf("clean up: %v", err)
	}
}

// Clear ends the pods in a namespace: it deletes them without grace, because there may be no node left to stop
// them. It deletes the namespace itself only if pods have an owner that would make them again, or if the cluster
// outlives the tests: the deletion costs the API server two requests for each kind of object that it knows,
// which was half of all its work. A missing namespace is no error.
func (a *API) Clear(ctx context.Context, namespace string) error {
	pods, err := a.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list pods in namespace %s: %w", namespace, err)
	}
	if len(pods.Items) > 0 {
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
		if err := a.Client.CoreV1().Pods(namespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
			return fmt.Errorf("delete pods in namespace %s: %w", namespace, err)
		}
	}
	owned := func(p corev1.Pod) bool { return len(p.OwnerReferences) > 0 }
	if a.cluster != nil && !slices.ContainsFunc(pods.Items, owned) {
		return nil
	}
	err = a.Client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete namespace %s: %w", namespace, err)
	}
	return nil
}

// NodeName returns a node name unused by other tests. If a node of that name exists at the test's end, it is
// deleted.
func (a *API) NodeName(t testing.TB) string {
	t.Helper()
	safe := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}
	name := strings.Map(safe, strings.ToLower(t.Name()))
	name = strings.Trim(name[:min(len(name), 40)], "-") + "-" + rand.String(6)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		err := a.Client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Logf("clean up: delete node %s: %v", name, err)
		}
	})
	return name
}
