// SPDX-License-Identifier: Apache-2.0

package admiralty

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
	APIVersion = "admiralty.virtual-kubelet.io/v1alpha1"
	Kind       = "AdmiraltyProviderConfiguration"
)

// Defaults of the limits of requests.
const (
	DefaultQPS   = 500
	DefaultBurst = 1000
)

// Kinds of object that the node creates in the target cluster.
const (
	ObjectPod         = "Pod"
	ObjectPodChaperon = "PodChaperon"
)

// Config is the configuration of the provider. Environment variables such as VKUBELET_ADMIRALTY_KUBECONFIG can
// also set fields with one value or a list.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Target is the name of the Target or ClusterTarget that the node represents. Default: the name of the node.
	Target string `json:"target,omitempty"`
	// TargetNamespace is the namespace of the Target. Default: Target is a ClusterTarget.
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// Kubeconfig is the path of the kubeconfig for the target cluster. Required.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Context is the context in the kubeconfig file. Default: the current context of the file.
	Context string `json:"context,omitempty"`
	// ClusterName is the name of the source cluster, where the node is, in the target cluster. It must be unique
	// among the source clusters of a target cluster, and must not change while there are pods. Required.
	ClusterName string `json:"clusterName,omitempty"`
	// Object is the kind of object that the node creates in the target cluster: Pod, or PodChaperon where an
	// agent of Admiralty runs there. Default: Pod.
	Object string `json:"object,omitempty"`
	// Namespace is the namespace for all pods. Default: each namespace of the source cluster gets its own,
	// created when it is needed.
	Namespace string `json:"namespace,omitempty"`
	// Namespaces maps namespaces of the source cluster to existing namespaces of the target cluster. They take
	// precedence over created namespaces. Namespaces excludes Namespace.
	Namespaces map[string]string `json:"namespaces,omitempty"`
	// ServiceAccount is the service account of pods in the target cluster. Pods do not get its token. Default:
	// the default service account of the namespace.
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// Constraints are the fields with which an elected pod may select nodes of the target cluster: nodeSelector,
	// affinity, tolerations. Default: nodeSelector and affinity.
	Constraints []string `json:"constraints,omitempty"`
	// Placement selects nodes of the target cluster for pods without constraints of their own.
	Placement remotecluster.Placement `json:"placement,omitzero"`
	// Annotations are the pod annotations that are copied to the target cluster: full names, and prefixes such as
	// example.com/*. Default: none, because programs in the target cluster may grant privileges by annotations.
	Annotations []string `json:"annotations,omitempty"`
	// Capacity is the capacity of the node. Default: the free resources of the Ready nodes of the target cluster.
	// The default needs permission to read all nodes and pods of the target cluster.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// QPS and Burst limit requests to the target cluster. Default DefaultQPS and DefaultBurst.
	QPS   int `json:"qps,omitempty"`
	Burst int `json:"burst,omitempty"`

	refreshEvery time.Duration // for tests; 0: the default
}

// format describes the configuration file of this provider.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_ADMIRALTY", Renamed: map[string]string{"clusterID": "clusterName"}}

// LoadConfig reads the configuration file at path; environment variables override it. If path is empty,
// LoadConfig reads no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// Complete fills the defaults of c for a node and refuses invalid configurations.
func (c Config) Complete(nodeName string) (Config, error) {
	if c.Target == "" {
		c.Target = nodeName
	}
	if c.Object == "" {
		c.Object = ObjectPod
	}
	if c.Constraints == nil {
		c.Constraints = []string{remotecluster.FieldNodeSelector, remotecluster.FieldAffinity}
	}
	if err := c.checkConfig(); err != nil {
		return c, fmt.Errorf("admiralty provider: %w", err)
	}
	if c.QPS == 0 {
		c.QPS = DefaultQPS
	}
	if c.Burst == 0 {
		c.Burst = max(DefaultBurst, c.QPS)
	}
	return c, nil
}

// checkConfig returns an error if the configuration is invalid.
func (c Config) checkConfig() error {
	if problems := validation.IsDNS1123Label(c.ClusterName); len(problems) > 0 {
		return fmt.Errorf("clusterName: %q: want a name for the source cluster, such as source-1: set it in the file of --provider-config or in VKUBELET_ADMIRALTY_CLUSTER_NAME: %s", c.ClusterName, problems[0])
	}
	for field, value := range map[string]string{"target": c.Target, "targetNamespace": c.TargetNamespace} {
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			return fmt.Errorf("%s: %q is a label of the node: %s", field, value, problems[0])
		}
	}
	for home, remote := range c.Namespaces {
		if problems := validation.IsDNS1123Label(remote); len(problems) > 0 {
			return fmt.Errorf("namespaces: %s: %q: %s", home, remote, problems[0])
		}
	}
	if err := c.constraints().CheckAllowed(); err != nil {
		return err
	}
	for name, quantity := range c.Capacity {
		if quantity.Sign() < 0 {
			return fmt.Errorf("capacity %s is %s, want 0 or more", name, quantity.String())
		}
	}
	switch {
	case c.Object != ObjectPod && c.Object != ObjectPodChaperon:
		return fmt.Errorf("object: %q: want %s or %s", c.Object, ObjectPod, ObjectPodChaperon)
	case c.Namespace != "" && len(c.Namespaces) > 0:
		return errors.New("namespaces: all pods go to namespace: remove one of both")
	case c.Capacity == nil && c.Namespace != "":
		return errors.New("capacity: is required with namespace, as the rights of one namespace do not show nodes")
	case c.QPS < 0 || c.Burst < 0:
		return fmt.Errorf("qps and burst are %d and %d, want 0 for the default, or more", c.QPS, c.Burst)
	}
	return nil
}

// Access returns the client configuration for the target cluster.
func (c Config) Access() (*rest.Config, error) {
	if c.Kubeconfig == "" {
		return nil, errors.New("admiralty provider: kubeconfig: is missing: set it in the file of --provider-config or in VKUBELET_ADMIRALTY_KUBECONFIG")
	}
	access, err := remotecluster.Access(c.Kubeconfig, c.Context)
	if err != nil {
		return nil, fmt.Errorf("admiralty provider: kubeconfig: %w", err)
	}
	access.UserAgent = "virtual-kubelet-admiralty"
	access.QPS, access.Burst = float32(c.QPS), c.Burst
	return access, nil
}

// showsAnnotation reports whether an annotation is copied to the target cluster.
func (c Config) showsAnnotation(key string) bool {
	return slices.ContainsFunc(c.Annotations, func(name string) bool {
		beginning, open := strings.CutSuffix(name, "*")
		return name == key || open && strings.HasPrefix(key, beginning)
	})
}
