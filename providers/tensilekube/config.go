// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// The version and the kind of a configuration file of this provider.
const (
	APIVersion = "tensilekube.virtual-kubelet.io/v1alpha1"
	Kind       = "TensileKubeProviderConfiguration"
)

// Default limits of requests, the same as in Tensile Kube.
const (
	DefaultQPS   = 500
	DefaultBurst = 1000
)

// Config is the configuration of the provider. Environment variables such as VKUBELET_TENSILEKUBE_KUBECONFIG can
// also set fields with one value or a list.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must have the value of the constant Kind in a configuration file.
	Kind string `json:"kind,omitempty"`
	// Kubeconfig is the path of the kubeconfig for the lower cluster. Required.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Context is the context in the kubeconfig file. Default: the current context of the file.
	Context string `json:"context,omitempty"`
	// ClusterName is the name of the upper cluster in the lower cluster. It must be unique among the upper
	// clusters of a lower cluster, and must not change while there are pods. Required.
	ClusterName string `json:"clusterName,omitempty"`
	// Namespace is the namespace for all pods. Default: each namespace of the upper cluster gets its own,
	// created when it is needed.
	Namespace string `json:"namespace,omitempty"`
	// Namespaces maps namespaces of the upper cluster to existing namespaces of the lower cluster. They take
	// precedence over created namespaces. Namespaces excludes Namespace.
	Namespaces map[string]string `json:"namespaces,omitempty"`
	// ServiceAccount is the service account of pods in the lower cluster. Pods do not get its token. Default:
	// the default service account of the namespace.
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// ClusterSelector are the fields that the annotation clusterSelector of a pod may set: nodeSelector,
	// affinity, tolerations. Default: all three, because the webhook of Tensile Kube sets them for each pod.
	ClusterSelector []string `json:"clusterSelector,omitempty"`
	// Placement selects nodes of the lower cluster for pods without an annotation.
	Placement remotecluster.Placement `json:"placement,omitzero"`
	// Annotations are the pod annotations that are copied to the lower cluster: full names, and prefixes such as
	// example.com/*. Default: none, because programs in the lower cluster may grant privileges by annotations.
	Annotations []string `json:"annotations,omitempty"`
	// StorageClasses maps storage classes of the upper cluster to classes of the lower cluster. Pods may claim
	// volumes of these classes, and the provider creates the claims in the lower cluster. Default: none.
	StorageClasses map[string]string `json:"storageClasses,omitempty"`
	// GlobalServices copies Services with the label or annotation global=true to the lower cluster, with their
	// endpoints outside of it. The node then needs permission to list and watch EndpointSlices of the upper
	// cluster. Default: false.
	GlobalServices bool `json:"globalServices,omitempty"`
	// Capacity is the capacity of the node. Default: the free resources of the Ready nodes of the lower cluster.
	// The default needs permission to read all nodes and pods of the lower cluster.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// QPS and Burst limit requests to the lower cluster. Default DefaultQPS and DefaultBurst.
	QPS   int `json:"qps,omitempty"`
	Burst int `json:"burst,omitempty"`

	refreshEvery time.Duration // for tests; 0: the default
}

// format describes the configuration file of this provider.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_TENSILEKUBE", Renamed: map[string]string{"clusterID": "clusterName"}}

// LoadConfig reads the configuration file at path; environment variables override it. If path is empty,
// LoadConfig reads no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// completeConfig fills the defaults of c and refuses invalid configurations.
func (c Config) completeConfig() (Config, error) {
	if problems := validation.IsDNS1123Label(c.ClusterName); len(problems) > 0 {
		return c, fmt.Errorf("tensilekube provider: clusterName: %q: want a name for the upper cluster, such as upper-1: set it in the file of --provider-config or in VKUBELET_TENSILEKUBE_CLUSTER_NAME: %s", c.ClusterName, problems[0])
	}
	if c.Namespace != "" && len(c.Namespaces) > 0 {
		return c, errors.New("tensilekube provider: namespaces: all pods go to namespace: remove one of the two")
	}
	if c.Namespace != "" && c.GlobalServices {
		return c, errors.New("tensilekube provider: globalServices: services of two namespaces may have one name, and all go to namespace: remove one of both")
	}
	for home, remote := range c.Namespaces {
		if problems := validation.IsDNS1123Label(remote); len(problems) > 0 {
			return c, fmt.Errorf("tensilekube provider: namespaces: %s: %q: %s", home, remote, problems[0])
		}
	}
	if one, other := remotecluster.Shared(c.Namespaces); c.GlobalServices && one != "" {
		return c, fmt.Errorf("tensilekube provider: namespaces: %s and %s go to the same one, in which globalServices would mix their services: give each one of its own, or set globalServices: false", one, other)
	}
	for home, remote := range c.StorageClasses {
		if problems := validation.IsDNS1123Subdomain(remote); len(problems) > 0 {
			return c, fmt.Errorf("tensilekube provider: storageClasses: %s: %q: want a storage class of the lower cluster: %s", home, remote, problems[0])
		}
	}
	if c.ClusterSelector == nil {
		c.ClusterSelector = []string{remotecluster.FieldNodeSelector, remotecluster.FieldAffinity, remotecluster.FieldTolerations}
	}
	if err := c.selector().CheckAllowed(); err != nil {
		return c, fmt.Errorf("tensilekube provider: %w", err)
	}
	for name, quantity := range c.Capacity {
		if quantity.Sign() < 0 {
			return c, fmt.Errorf("tensilekube provider: capacity %s is %s, want 0 or more", name, quantity.String())
		}
	}
	switch {
	case c.Capacity == nil && c.Namespace != "":
		return c, errors.New("tensilekube provider: capacity: is required with namespace, as the rights of one namespace do not show nodes")
	case c.QPS < 0 || c.Burst < 0:
		return c, fmt.Errorf("tensilekube provider: qps and burst are %d and %d, want 0 for the default, or more", c.QPS, c.Burst)
	case c.QPS == 0:
		c.QPS = DefaultQPS
	}
	if c.Burst == 0 {
		c.Burst = max(DefaultBurst, c.QPS)
	}
	return c, nil
}

// selectGlobal returns a function that selects the Services to copy to the lower cluster, or nil if none are copied.
func (c Config) selectGlobal() func(*corev1.Service) bool {
	if !c.GlobalServices {
		return nil
	}
	return remotecluster.MarkedGlobal
}

// lowerAccess returns the client configuration for the lower cluster.
func (c Config) lowerAccess() (*rest.Config, error) {
	if c.Kubeconfig == "" {
		return nil, errors.New("tensilekube provider: kubeconfig: is missing: set it in the file of --provider-config or in VKUBELET_TENSILEKUBE_KUBECONFIG")
	}
	access, err := remotecluster.Access(c.Kubeconfig, c.Context)
	if err != nil {
		return nil, fmt.Errorf("tensilekube provider: kubeconfig: %w", err)
	}
	access.UserAgent = "virtual-kubelet-tensilekube"
	access.QPS, access.Burst = float32(c.QPS), c.Burst
	return access, nil
}

// showsAnnotation reports whether an annotation is copied to the lower cluster.
func (c Config) showsAnnotation(key string) bool {
	return slices.ContainsFunc(c.Annotations, func(name string) bool {
		beginning, open := strings.CutSuffix(name, "*")
		return name == key || open && strings.HasPrefix(key, beginning)
	})
}
