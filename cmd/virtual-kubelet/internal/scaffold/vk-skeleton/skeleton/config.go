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

// What a configuration file of this provider says about itself.
const (
	APIVersion = "skeleton.virtual-kubelet.io/v1alpha1"
	Kind       = "SkeletonProviderConfiguration"
)

// Config is the configuration of the provider. A field that is one value can also be set by an environment variable, such as
// VKUBELET_SKELETON_ENDPOINT.
//
// FILL(config): name what your service needs: a region, a project, a subnet. Each field says what it means, its unit and its default, and check says
// what is missing.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Endpoint is the URL of the service. Required.
	Endpoint string `json:"endpoint,omitempty"`
	// Token is the credential for it: the text, {file: PATH} or {env: NAME}. Default: none.
	Token config.Secret `json:"token,omitzero"`
	// ClusterName names this cluster at the service. No two clusters of one account may have the same, and it must not change while there are
	// pods. Required.
	ClusterName string `json:"clusterName,omitempty"`
	// Capacity is what the node offers to the scheduler. Default: 20 CPUs, 100Gi of memory, 400Gi of ephemeral storage, and 20 pods.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	every time.Duration // of tests: how often lists and logs are asked for; 0: as the kit has it
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

// LoadConfig returns what the file at path says, and the environment above it. An empty path is no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// check says everything that is wrong with a configuration.
func (c Config) check() error {
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
