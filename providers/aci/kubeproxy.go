// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// The settings of the extension of ACI that runs a kube-proxy: virtual-kubelet/azure-aci:
// pkg/client/extensions.go, 2026-02-17. ACI has no other version of the extension.
const (
	kubeProxy            = "kube-proxy"
	kubeProxyExtension   = "1.0"
	kubeProxyVersion     = "v1.9.10"
	kubeProxyClusterCIDR = "10.240.0.0/16"
)

// serviceAccount is the directory with the token of the service account of a pod.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// isSet reports whether groups have a kube-proxy.
func (k KubeProxy) isSet() bool { return k.APIServer != "" || k.Kubeconfig.IsSet() }

// kubeconfig returns the kubeconfig for the kube-proxy of a group. It is read for each group, because tokens are
// replaced.
func (k KubeProxy) kubeconfig(ctx context.Context, in *service.Inputs, account string) (string, error) {
	if k.Kubeconfig.IsSet() {
		text := k.Kubeconfig.Value(ctx)
		if text == "" {
			return "", errors.New("network.kubeProxy.kubeconfig: the file is empty")
		}
		in.Hide(text)
		if file, err := clientcmd.Load([]byte(text)); err == nil { // otherwise kube-proxy reports the error
			for _, of := range file.AuthInfos {
				in.Hide(of.Token, of.Password, string(of.ClientKeyData))
			}
		}
		return text, nil
	}
	var read [2][]byte
	for i, name := range []string{"ca.crt", "token"} {
		var err error
		if read[i], err = os.ReadFile(filepath.Join(account, name)); err != nil {
			return "", fmt.Errorf("network.kubeProxy: this process has no service account for it: name kubeconfig: %w", err)
		}
	}
	token := strings.TrimSpace(string(read[1]))
	server := k.APIServer
	if !strings.Contains(server, "://") {
		server = "https://" + server // the default of azure-aci
	}
	const name = "virtual-kubelet"
	text, err := json.Marshal(clientcmdapi.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: name,
		Clusters:  []clientcmdapi.NamedCluster{{Name: name, Cluster: clientcmdapi.Cluster{Server: server, CertificateAuthorityData: read[0]}}},
		AuthInfos: []clientcmdapi.NamedAuthInfo{{Name: name, AuthInfo: clientcmdapi.AuthInfo{Token: token}}},
		Contexts:  []clientcmdapi.NamedContext{{Name: name, Context: clientcmdapi.Context{Cluster: name, AuthInfo: name}}},
	})
	in.Hide(token, string(text))
	return string(text), err
}

// extension returns the kube-proxy of a group.
func (k KubeProxy) extension(kubeconfig string) *aci.DeploymentExtensionSpec {
	return &aci.DeploymentExtensionSpec{Name: new(kubeProxy), Properties: &aci.DeploymentExtensionSpecProperties{
		ExtensionType: new(kubeProxy), Version: new(kubeProxyExtension),
		Settings:          map[string]string{"clusterCidr": cmp.Or(k.ClusterCIDR, kubeProxyClusterCIDR), "kubeVersion": kubeProxyVersion},
		ProtectedSettings: map[string]string{"kubeConfig": base64.StdEncoding.EncodeToString([]byte(kubeconfig))},
	}}
}

// reachesDNS refuses a pod with the address of a Service as its DNS: only a kube-proxy in the group makes such an address reachable.
// An operator can fix this, so the error does not fail the pod.
func (n Network) reachesDNS(pod *corev1.Pod, services corev1listers.ServiceLister) error {
	if services == nil || n.ClusterDNS == "" || n.KubeProxy.isSet() || cmp.Or(pod.Spec.DNSPolicy, corev1.DNSClusterFirst) != corev1.DNSClusterFirst {
		return nil
	}
	all, err := services.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Spec.ClusterIP == n.ClusterDNS || slices.Contains(s.Spec.ClusterIPs, n.ClusterDNS) {
			return fmt.Errorf("network.clusterDNS: %s is the address of Service %s/%s, which container groups reach with a kube-proxy alone: set network.kubeProxy (MASTER_URI), "+
				"or the address of an internal load balancer before the cluster's DNS, or remove clusterDNS", n.ClusterDNS, s.Namespace, s.Name)
		}
	}
	return nil
}
