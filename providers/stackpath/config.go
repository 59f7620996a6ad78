// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/sshexec"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
)

// APIVersion and Kind of a configuration file of this provider.
const (
	APIVersion = "stackpath.virtual-kubelet.io/v1alpha1"
	Kind       = "StackPathProviderConfiguration"
)

// Config is the configuration of the provider. An environment variable such as VKUBELET_STACKPATH_ENDPOINT can
// also set a field that is one value or a list.
type Config struct {
	// APIVersion and Kind must be the constants of the same names in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	// Endpoint is the URL of the API. Required: the service has closed, and a new owner of its domain would get the secret.
	Endpoint string `json:"endpoint,omitempty" env:"SP_API_HOST"`
	// CAFile has the certificate authorities of the endpoint. Default: the authorities of this machine.
	CAFile string `json:"caFile,omitempty"`
	// StackID is the stack of the workloads. Required.
	StackID string `json:"stackID,omitempty" env:"SP_STACK_ID"`
	// ClientID and ClientSecret are the credentials of OAuth 2. Required.
	ClientID     string        `json:"clientID,omitempty" env:"SP_CLIENT_ID"`
	ClientSecret config.Secret `json:"clientSecret,omitzero" env:"SP_CLIENT_SECRET"`
	// ClusterName names the home cluster in the labels of workloads. Each cluster of a stack needs its own name.
	// Required.
	ClusterName string `json:"clusterName,omitempty"`
	// CityCode is the location of pods, such as ORD. Required.
	CityCode string `json:"cityCode,omitempty" env:"SP_CITY_CODE"`
	// OpenPorts lets the internet connect to the ports that containers name. Default: ports are closed.
	OpenPorts bool `json:"openPorts,omitempty"`
	// Console is the SSH server for commands in containers. The client secret is the password there. Default:
	// there is no exec.
	Console sshexec.Server `json:"console,omitzero"`
	// InstanceRequests is the number of requests per minute for running instances. Each request reads one instance. Default 60.
	InstanceRequests int `json:"instanceRequests,omitempty"`
	// Capacity is the capacity of the node. Required.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	busy, rest, idle, seenWithin time.Duration // for tests
}

var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_STACKPATH"}

// LoadConfig returns the configuration in the file at path; the environment overrides the file. An empty path
// means no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// complete fills the defaults of c, and refuses invalid values with every reason.
func (c Config) complete() (Config, error) {
	problems := config.Problems{Provider: "stackpath"}
	if c.Endpoint != "" && !strings.Contains(c.Endpoint, "://") {
		c.Endpoint = "https://" + c.Endpoint // SP_API_HOST is a host
	}
	if u, err := url.Parse(c.Endpoint); err != nil || u.Scheme != "https" || u.Host == "" {
		problems.Add("endpoint: %q: want the URL of an API that begins with https://: there is no default, as the service is closed", c.Endpoint)
	}
	for field, missing := range map[string]bool{
		"stackID": c.StackID == "", "clientID": c.ClientID == "", "clientSecret": !c.ClientSecret.IsSet(), "cityCode": c.CityCode == "", "capacity": len(c.Capacity) == 0,
	} {
		if missing {
			problems.Add("%s: is missing", field)
		}
	}
	c.Endpoint, c.CityCode, c.InstanceRequests = strings.TrimSuffix(c.Endpoint, "/"), strings.ToUpper(c.CityCode), max(1, cmp.Or(c.InstanceRequests, 60))
	problems.ClusterName(c.ClusterName, "VKUBELET_STACKPATH_CLUSTER_NAME")
	if err := c.Console.Check(); c.Console.IsSet() && err != nil {
		problems.Add("console: %w: it is shown the client secret", err)
	}
	c.Capacity = storage.Offer(c.Capacity, resource.MustParse("1Gi")) // the service does not count ephemeral storage
	return c, problems.Err()
}
