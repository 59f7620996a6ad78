// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/sign"
)

// clientConfig returns the client configuration for CCI. It is a Kubernetes client configuration with a transport
// that authenticates requests and translates the API names.
func (c Config) clientConfig() (*rest.Config, error) {
	access := &rest.Config{
		Host: c.Endpoint, UserAgent: "virtual-kubelet-huaweicci", QPS: float32(c.QPS), Burst: c.Burst,
		ContentConfig:   rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"},
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.CAFile},
	}
	now := c.now
	if now == nil {
		now = time.Now
	}
	known, err := c.authTransport(now)
	if err != nil {
		return nil, err
	}
	access.Wrap(known)
	access.Wrap(func(next http.RoundTripper) http.RoundTripper { return explained{next, now} })
	if c.API == API20 {
		access.Wrap(func(next http.RoundTripper) http.RoundTripper { return renamed{next} })
	}
	access.Wrap(func(next http.RoundTripper) http.RoundTripper { return withoutServices{next} })
	return access, nil
}

// authTransport returns a transport that authenticates requests for the project, by a signature or by a token.
func (c Config) authTransport(now func() time.Time) (func(http.RoundTripper) http.RoundTripper, error) {
	if c.IAM.User == "" {
		key := func(ctx context.Context) (sign.Key, error) {
			return sign.Key{Access: c.AccessKey.Value(ctx), Secret: c.SecretKey.Value(ctx), Token: c.SecurityToken.Value(ctx)}, nil
		}
		return func(next http.RoundTripper) http.RoundTripper { return sign.Signed(next, key, c.ProjectID, now) }, nil
	}
	toIAM, err := rest.TransportFor(&rest.Config{Host: c.IAM.Endpoint, TLSClientConfig: rest.TLSClientConfig{CAFile: c.CAFile}})
	if err != nil {
		return nil, fmt.Errorf("huaweicci provider: iam: %w", err)
	}
	tokens := sign.NewTokens(c.IAM.Endpoint, sign.Login{
		User: c.IAM.User, Domain: c.IAM.Domain, ProjectID: c.ProjectID, Password: c.IAM.Password.Value,
	}, toIAM, now)
	return func(next http.RoundTripper) http.RoundTripper { return sign.WithToken(next, tokens) }, nil
}

// place is the CCI namespace of the pods, with its network.
type place struct {
	config Config
	client kubernetes.Interface
}

// network has the fields of a CCI network that the provider reads and writes.
type network struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            networkSpec       `json:"spec"`
	Status          struct {
		Status string `json:"status,omitempty"`
	} `json:"status,omitzero"`
}

type networkSpec struct {
	NetworkType    string   `json:"networkType,omitempty"`
	SecurityGroups []string `json:"securityGroups,omitempty"`
	Subnets        []subnet `json:"subnets,omitempty"`
}

type subnet struct {
	ID string `json:"subnetID"`
}

// networksPath returns the API path of the networks in the namespace.
func (p place) networksPath() string {
	group := "yangtse/v2"
	if p.config.API == API10 {
		group = "networking.cci.io/v1beta1"
	}
	return "/apis/" + group + "/namespaces/" + p.config.Namespace + "/networks"
}

// checkNetworks returns an error if CCI does not answer, the credentials are refused, or pods cannot start
// because the namespace has no network, or a failed or full one.
func (p place) checkNetworks(ctx context.Context) error {
	list, err := p.listNetworks(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("namespace %s of CCI: %w", p.config.Namespace, errNoNetwork)
	}
	for _, n := range list {
		if s := n.Status.Status; s == "Failed" || s == "IPInsufficient" {
			return fmt.Errorf("network %s of namespace %s of CCI is %s: look at its subnets", n.Metadata.Name, p.config.Namespace, s)
		}
	}
	return nil
}

func (p place) listNetworks(ctx context.Context) ([]network, error) {
	result := p.client.Discovery().RESTClient().Get().AbsPath(p.networksPath()).Do(ctx)
	if err := result.Error(); err != nil { // unlike Raw, Error returns the error text of CCI
		return nil, fmt.Errorf("look at the networks of namespace %s of CCI: %w", p.config.Namespace, err)
	}
	var list struct {
		Items []network `json:"items"`
	}
	data, err := result.Raw()
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("look at the networks of namespace %s of CCI: %w", p.config.Namespace, err)
	}
	return list.Items, nil
}

// makeNamespace creates the namespace and its network if they are missing and a network is configured.
func (p place) makeNamespace(ctx context.Context) error {
	if p.config.Network.Name == "" {
		return nil
	}
	ns, err := p.client.CoreV1().Namespaces().Get(ctx, p.config.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		ns, err = p.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.config.Namespace}}, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) { // another node has just created it
		return fmt.Errorf("make namespace %s of CCI: %w", p.config.Namespace, err)
	}
	if err == nil && ns.DeletionTimestamp != nil {
		return fmt.Errorf("namespace %s of CCI is being deleted", p.config.Namespace)
	}
	list, err := p.listNetworks(ctx)
	if err != nil || len(list) > 0 {
		return err
	}
	n := network{
		TypeMeta: metav1.TypeMeta{APIVersion: "yangtse/v2", Kind: "Network"},
		Metadata: metav1.ObjectMeta{Name: p.config.Network.Name, Namespace: p.config.Namespace, Annotations: map[string]string{
			"yangtse.io/domain-id": p.config.Network.DomainID, "yangtse.io/project-id": p.config.ProjectID,
		}},
		Spec: networkSpec{NetworkType: p.config.Network.Type, SecurityGroups: p.config.Network.SecurityGroups},
	}
	for _, id := range p.config.Network.Subnets {
		n.Spec.Subnets = append(n.Spec.Subnets, subnet{id})
	}
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	err = p.client.Discovery().RESTClient().Post().AbsPath(p.networksPath()).SetHeader("Content-Type", "application/json").Body(data).Do(ctx).Error()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make network %s of namespace %s of CCI: %w", n.Metadata.Name, p.config.Namespace, err)
	}
	return nil
}
