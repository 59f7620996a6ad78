// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// What a configuration file of this provider says about itself.
const (
	APIVersion = "skeleton.virtual-kubelet.io/v1alpha1"
	Kind       = "SkeletonProviderConfiguration"
)

// Config is the configuration of the provider. A field can also be set by an environment variable, such as
// VKUBELET_SKELETON_ENDPOINT.
//
// FILL(config): name what your service needs: a region, a project, a subnet. Each field says what it means, its unit and its default.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Endpoint is the URL of the service. Default: none, which is the service in memory.
	Endpoint string `json:"endpoint,omitempty"`
	// Token is the credential for it: the text, {file: PATH} or {env: NAME}. Default: none.
	Token config.Secret `json:"token,omitempty"`
	// PollInterval is how often changes of pods are looked for, by one list for all pods. Default 2s.
	PollInterval metav1.Duration `json:"pollInterval,omitempty"`
	// Capacity is what the node offers to the scheduler.
	Capacity Capacity `json:"capacity,omitempty"`
}

// Capacity is what a node offers.
type Capacity struct {
	// CPU is in cores. Default 20.
	CPU resource.Quantity `json:"cpu,omitempty"`
	// Memory is in bytes. Default 100Gi.
	Memory resource.Quantity `json:"memory,omitempty"`
	// EphemeralStorage is in bytes: pods that request some are scheduled only where the node offers it. Default 400Gi.
	EphemeralStorage resource.Quantity `json:"ephemeral-storage,omitempty"`
	// Pods is how many pods. Default 20.
	Pods resource.Quantity `json:"pods,omitempty"`
}

var format = config.Format[Config]{
	APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_SKELETON",
	Default: func() Config {
		return Config{
			PollInterval: metav1.Duration{Duration: 2 * time.Second},
			Capacity: Capacity{
				CPU: resource.MustParse("20"), Memory: resource.MustParse("100Gi"), EphemeralStorage: resource.MustParse("400Gi"), Pods: resource.MustParse("20"),
			},
		}
	},
}

// LoadConfig returns what the file at path says, and the environment above it. An empty path is no file.
func LoadConfig(path string) (Config, error) {
	c, err := format.Load(path)
	if err == nil && c.PollInterval.Duration <= 0 {
		err = fmt.Errorf("provider skeleton: pollInterval is %s, want more than 0", c.PollInterval.Duration)
	}
	return c, err
}
