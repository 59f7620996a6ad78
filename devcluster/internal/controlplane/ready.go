// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/pki"
)

const (
	// readyInterval is the interval of readiness requests to the API server, which offers no notification.
	readyInterval = 10 * time.Millisecond
	// readyAttempt bounds one request; the first request waits until the API server serves at all.
	readyAttempt = 30 * time.Second
)

func adminClient(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return client, nil
}

// awaitReady waits until the API server reports that it is ready.
func awaitReady(ctx context.Context, client kubernetes.Interface) error {
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, readyAttempt)
		err := client.Discovery().RESTClient().Get().AbsPath("/readyz").MaxRetries(0).Do(attempt).Error()
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the API server: %w", errors.Join(context.Cause(ctx), err))
		case <-ticker.C:
		}
	}
}

// allowKubeletAPI lets the API server's own client certificate use the API of nodes with webhook authorization,
// as kubeadm does for its clusters.
func allowKubeletAPI(ctx context.Context, client kubernetes.Interface) error {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "devcluster:kubelet-api-admin"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:kubelet-api-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: pki.KubeletClientUser}},
	}
	_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("bind %s to system:kubelet-api-admin: %w", pki.KubeletClientUser, err)
	}
	return nil
}

// awaitServiceAccount waits until the namespace default has its service account: from then on a pod can be
// created.
func awaitServiceAccount(ctx context.Context, client kubernetes.Interface) error {
	selector := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "default").String()}
	for {
		// A watch without a resource version begins with the existing objects.
		w, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Watch(ctx, selector)
		if err != nil {
			return fmt.Errorf("watch the default service account: %w", errors.Join(context.Cause(ctx), err))
		}
		found := contains(ctx, w)
		w.Stop()
		if found {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for the default service account: %w", context.Cause(ctx))
		}
	}
}

func contains(ctx context.Context, w watch.Interface) bool {
	for {
		select {
		case event, open := <-w.ResultChan():
			if !open || event.Type == watch.Error {
				return false
			}
			if event.Type == watch.Added || event.Type == watch.Modified {
				return true
			}
		case <-ctx.Done():
			return false
		}
	}
}
