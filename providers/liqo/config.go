// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// The version and the kind of a configuration file of this provider.
const (
	APIVersion = "liqo.virtual-kubelet.io/v1alpha1"
	Kind       = "LiqoProviderConfiguration"
)

// Defaults of the limits of requests.
const (
	DefaultQPS   = 500
	DefaultBurst = 1000
)

// Config is the configuration of the provider. Environment variables such as VKUBELET_LIQO_KUBECONFIG can also
// set fields with one value or a list.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Kubeconfig is the path of the kubeconfig for the remote cluster. Required.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Context is the context in the kubeconfig file. Default: the current context of the file.
	Context string `json:"context,omitempty"`
	// ClusterName is Liqo's name for the home cluster. It must not change while there are pods. Required.
	ClusterName string `json:"clusterName,omitempty"`
	// ForeignClusterID is Liqo's ID for the remote cluster. Required.
	ForeignClusterID string `json:"foreignClusterID,omitempty"`
	// TenantNamespace is the namespace of the home cluster with the NamespaceMap of the remote cluster. Default:
	// no NamespaceMap is read, and only Namespaces are offloaded.
	TenantNamespace string `json:"tenantNamespace,omitempty"`
	// HomeKubeconfig is the path of the kubeconfig for reading the NamespaceMap in the home cluster. Default:
	// the service account of the node's own pod. HomeKubeconfig requires TenantNamespace.
	HomeKubeconfig string `json:"homeKubeconfig,omitempty"`
	// Namespaces maps namespaces of the home cluster to namespaces of the remote cluster. Namespaces takes
	// precedence over the NamespaceMap. With a single entry and no TenantNamespace, the provider reads nothing
	// outside this namespace of the remote cluster.
	Namespaces map[string]string `json:"namespaces,omitempty"`
	// ServiceAccount is the service account of pods in the remote cluster. Pods do not get its token. Default:
	// the default service account of the namespace.
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// Placement selects nodes of the remote cluster for pods.
	Placement remotecluster.Placement `json:"placement,omitzero"`
	// Services copies the Services of offloaded namespaces to the remote cluster, with their endpoints in the
	// home cluster. Services with the annotation liqo.io/skip-reflection are not copied. The field requires
	// several Namespaces, or a TenantNamespace.
	Services bool `json:"services,omitempty"`
	// Annotations are the pod annotations that are copied to the remote cluster: full names, and prefixes such as
	// example.com/*. Default: none, because programs in the remote cluster may grant privileges by annotations.
	Annotations []string `json:"annotations,omitempty"`
	// Capacity is the capacity of the node. Default: the free resources of the Ready nodes of the remote cluster.
	// The default needs permission to read all nodes and pods of the remote cluster.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// QPS and Burst limit requests to the remote cluster. Default DefaultQPS and DefaultBurst.
	QPS   int `json:"qps,omitempty"`
	Burst int `json:"burst,omitempty"`

	refreshEvery time.Duration // for tests; 0: the default
}

// format describes the configuration file of this provider.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_LIQO", Renamed: map[string]string{"homeClusterID": "clusterName"}}

// LoadConfig reads the configuration file at path; environment variables override it. If path is empty,
// LoadConfig reads no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// completeConfig fills the defaults of c and refuses invalid configurations.
func (c Config) completeConfig() (Config, error) {
	for _, id := range []struct{ field, value string }{{"clusterName", c.ClusterName}, {"foreignClusterID", c.ForeignClusterID}} {
		if problems := validation.IsDNS1123Label(id.value); len(problems) > 0 {
			return c, fmt.Errorf("liqo provider: %s: %q: want Liqo's name of the cluster, from liqoctl info: %s", id.field, id.value, problems[0])
		}
	}
	for home, remote := range c.Namespaces {
		if problems := validation.IsDNS1123Label(remote); len(problems) > 0 {
			return c, fmt.Errorf("liqo provider: namespaces: %s: %q: %s", home, remote, problems[0])
		}
	}
	for name, quantity := range c.Capacity {
		if quantity.Sign() < 0 {
			return c, fmt.Errorf("liqo provider: capacity %s is %s, want 0 or more", name, quantity.String())
		}
	}
	if one, other := remotecluster.Shared(c.Namespaces); c.Services && one != "" {
		return c, fmt.Errorf("liqo provider: namespaces: %s and %s go to the same one, in which services would mix theirs: give each one of its own, or set services: false", one, other)
	}
	switch {
	case c.ClusterName == c.ForeignClusterID:
		return c, fmt.Errorf("liqo provider: foreignClusterID: is that of the home cluster, %s", c.ClusterName)
	case c.TenantNamespace == "" && len(c.Namespaces) == 0:
		return c, errors.New("liqo provider: tenantNamespace: is missing: set it for the NamespaceMap of Liqo, or name the remote namespaces under namespaces")
	case c.TenantNamespace == "" && c.HomeKubeconfig != "":
		return c, errors.New("liqo provider: homeKubeconfig: reads the NamespaceMap, which needs tenantNamespace")
	case c.Services && c.onlyNamespace() != "":
		return c, errors.New("liqo provider: services: is not for one namespace alone, whose rights do not show Services: set tenantNamespace")
	case c.Capacity == nil && c.onlyNamespace() != "":
		return c, errors.New("liqo provider: capacity: is required with one namespace alone, as its rights do not show nodes")
	case c.QPS < 0 || c.Burst < 0:
		return c, fmt.Errorf("liqo provider: qps and burst are %d and %d, want 0 for the default, or more", c.QPS, c.Burst)
	case c.QPS == 0:
		c.QPS = DefaultQPS
	}
	if c.Burst == 0 {
		c.Burst = max(DefaultBurst, c.QPS)
	}
	return c, nil
}

// onlyNamespace returns the single remote namespace for pods, or "" if there may be several.
func (c Config) onlyNamespace() string {
	if c.TenantNamespace == "" && len(c.Namespaces) == 1 {
		for _, remote := range c.Namespaces {
			return remote
		}
	}
	return ""
}

// remoteAccess returns the client configuration for the remote cluster.
func (c Config) remoteAccess() (*rest.Config, error) {
	if c.Kubeconfig == "" {
		return nil, errors.New("liqo provider: kubeconfig: is missing: set it in the file of --provider-config or in VKUBELET_LIQO_KUBECONFIG")
	}
	access, err := remotecluster.Access(c.Kubeconfig, c.Context)
	if err != nil {
		return nil, fmt.Errorf("liqo provider: kubeconfig: %w", err)
	}
	access.UserAgent = "virtual-kubelet-liqo"
	access.QPS, access.Burst = float32(c.QPS), c.Burst
	return access, nil
}

// homeAccess returns the client configuration for the home cluster, or nil if none is needed.
func (c Config) homeAccess() (*rest.Config, error) {
	if c.TenantNamespace == "" {
		return nil, nil
	}
	if c.HomeKubeconfig == "" {
		access, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("liqo provider: homeKubeconfig: is missing, and this is not a pod with a service account of the home cluster: %w", err)
		}
		return access, nil
	}
	access, err := clientcmd.BuildConfigFromFlags("", c.HomeKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("liqo provider: homeKubeconfig: %w", err)
	}
	return access, nil
}

// showsAnnotation reports whether an annotation is copied to the remote cluster.
func (c Config) showsAnnotation(key string) bool {
	return slices.ContainsFunc(c.Annotations, func(name string) bool {
		beginning, open := strings.CutSuffix(name, "*")
		return name == key || open && strings.HasPrefix(key, beginning)
	})
}
