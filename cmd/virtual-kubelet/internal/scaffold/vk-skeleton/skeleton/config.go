// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// Header of a configuration file of this provider.
const (
	APIVersion = "skeleton.virtual-kubelet.io/v1alpha1"
	Kind       = "SkeletonProviderConfiguration"
)

// Config is the configuration of the provider. A field with a single value can also be set by an environment variable, such as
// VKUBELET_SKELETON_ENDPOINT.
//
// FILL(config): add the settings of your service: a region, a project, a subnet. The comment of each field states its meaning, its unit and its
// default, and checkFields reports missing settings.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Endpoint is the URL of the service. Required.
	Endpoint string `json:"endpoint,omitempty"`
	// Token is the credential for the service: a text, {file: PATH} or {env: NAME}. Default: none.
	Token config.Secret `json:"token,omitzero"`
	// ClusterName names this cluster at the service. Clusters with the same account need different names. The name must not change while there are
	// pods. Required.
	ClusterName string `json:"clusterName,omitempty"`
	// Capacity is the capacity of the node for the scheduler. Default: 20 CPUs, 100Gi of memory, 400Gi of
	// ephemeral storage, and 20 pods.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	every time.Duration // of tests: interval of lists and log reads; 0: the default of the kit
}

var format = config.Format[Config]{
	APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_SKELETON",
	Default: func() Config {
		return Config{Capacity: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("20"), corev1.ResourceMemory: resource.MustParse("100Gi"),
			corev1.ResourceEphemeralStorage: resource.MustParse("400Gi"), corev1.ResourcePods: resource.MustParse("20"),
		}}
	},
}

// LoadConfig returns the configuration of the file at path, overridden by the environment. An empty path means
// no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// checkFields returns all errors of a configuration.
func (c Config) checkFields() error {
	var wrong []error
	if u, err := url.Parse(c.Endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		wrong = append(wrong, fmt.Errorf("endpoint is %q, want the URL of the service, such as https://skeleton.example", c.Endpoint))
	}
	if c.ClusterName == "" {
		wrong = append(wrong, errors.New("clusterName is not set: choose a name for this cluster that no other cluster has at the service"))
	}
	if err := errors.Join(wrong...); err != nil {
		return fmt.Errorf("skeleton provider: %w", err)
	}
	return nil
}
