// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Every agent is this service account with all rights: different rights must not make a difference. The audit
// log separates its requests from the client's by this name.
const (
	agentNamespace = "kube-system"
	agentAccount   = "bench-agent"
	agentUser      = "system:serviceaccount:" + agentNamespace + ":" + agentAccount
)

// makeIdentity makes the service account, and returns a kubeconfig file with its token.
func makeIdentity(ctx context.Context, client kubernetes.Interface, admin, dir string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: agentAccount, Namespace: agentNamespace}}
	if _, err := client.CoreV1().ServiceAccounts(agentNamespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("create service account: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: agentAccount},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: agentNamespace, Name: agentAccount}},
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("create cluster role binding: %w", err)
	}
	seconds := int64(12 * time.Hour / time.Second)
	token, err := client.CoreV1().ServiceAccounts(agentNamespace).CreateToken(ctx, agentAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create token: %w", err)
	}
	config, err := clientcmd.LoadFromFile(admin)
	if err != nil {
		return "", fmt.Errorf("read kubeconfig: %w", err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	path := filepath.Join(dir, "agent.kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	return path, nil
}
