// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// makeNamespace makes a namespace for pods. It makes the service account, too, because there may be no
// controller for it.
func makeNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: name}}
	_, err := client.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create service account: %w", err)
	}
	return nil
}

// makeRootCA makes the ConfigMap for pods with a token, as a controller usually does.
func makeRootCA(ctx context.Context, client kubernetes.Interface, namespace string) error {
	ca := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": "of nobody"}}
	if _, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, ca, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create ConfigMap: %w", err)
	}
	return nil
}

// newPod returns the i-th pod. It is already bound, and has only a single container, so that nodes spend no time on other parts of a pod.
func newPod(namespace, node string, i int) *corev1.Pod {
	noToken := false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName(i), Namespace: namespace},
		Spec: corev1.PodSpec{
			NodeName:                     node,
			AutomountServiceAccountToken: &noToken,
			Containers:                   []corev1.Container{{Name: "app", Image: "example.com/app:1"}},
			// The toleration is for a node with a taint, in case a controller checks it.
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
}

// forAll calls do for 0 to n-1, workers at a time, and returns when each was answered. The first error
// ends it.
func forAll(ctx context.Context, workers, n int, do func(context.Context, int) error) ([]time.Time, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answered := make([]time.Time, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(ctx, i); err != nil {
					cancel(err)
					return
				}
				answered[i] = time.Now()
			}
		})
	}
	wg.Wait()
	return answered, context.Cause(ctx)
}
