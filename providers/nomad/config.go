// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// The header of a configuration file of this provider.
const (
	APIVersion = "nomad.virtual-kubelet.io/v1alpha1"
	Kind       = "NomadProviderConfiguration"
)

// Task drivers for pods.
const (
	DriverExec    = "exec"
	DriverRawExec = "raw_exec"
	DriverDocker  = "docker"
)

// Networks of pods.
const (
	NetworkBridge = "bridge"
	NetworkHost   = "host"
)

// Annotations of pods.
const (
	// AnnotationDriver chooses one of the configured drivers.
	AnnotationDriver = "nomad.hashicorp.com/driver"
	// AnnotationDatacenters narrows the datacenters of the configuration, with commas between them.
	AnnotationDatacenters = "nomad.hashicorp.com/datacenters"
)

// Config is the configuration of the provider. An environment variable, such as VKUBELET_NOMAD_ADDRESS, can also
// set a field with one value or a list.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Address is the URL of a Nomad agent, or its host and port. Without a scheme it means https:// with TLS, and http:// otherwise.
	// Default http://127.0.0.1:4646.
	Address string `json:"address,omitempty" env:"NOMAD_ADDR"`
	// Region is the region of the jobs. Default: the agent's.
	Region string `json:"region,omitempty" env:"NOMAD_REGION"`
	// Namespace is the namespace of the jobs. It must exist. Default: default.
	Namespace string `json:"namespace,omitempty" env:"NOMAD_NAMESPACE"`
	// Token is an ACL token; see the README for the policy. A file is read again when it changes.
	Token config.Secret `json:"token,omitzero" env:"NOMAD_TOKEN"`
	// TLS configures an address that begins with https://.
	TLS TLS `json:"tls,omitzero"`
	// ClusterName names the Kubernetes cluster at Nomad. Clusters that share a namespace need different names. The name must not change
	// while there are pods. Required.
	ClusterName string `json:"clusterName,omitempty"`
	// Datacenters are the datacenters for pods; * matches any characters. Default: all.
	Datacenters []string `json:"datacenters,omitempty"`
	// NodePool is the node pool for pods. Default: default.
	NodePool string `json:"nodePool,omitempty"`
	// Drivers are the drivers for pods: exec, raw_exec and docker. Pods without the annotation
	// nomad.hashicorp.com/driver use the first. Default: docker.
	Drivers []string `json:"drivers,omitempty"`
	// Network is the network of pods without hostNetwork: bridge, with an address for each pod, or host. Default
	// bridge.
	Network string `json:"network,omitempty"`
	// DNS are the DNS servers of pods with the dnsPolicy ClusterFirst. Default: the clients'.
	DNS []string `json:"dns,omitempty"`
	// Priority is the priority of the jobs, from 1 to 100. Default 50.
	Priority int `json:"priority,omitempty"`
	// RestartDelay is the pause before an ended container starts again; Nomad adds up to a quarter. Default 10s.
	RestartDelay metav1.Duration `json:"restartDelay,omitzero"`
	// LostAfter is how long a client may be away until its pods count as lost. Default 5m.
	LostAfter metav1.Duration `json:"lostAfter,omitzero"`
	// DefaultResources are for containers without requests. Default 100m and 128Mi.
	DefaultResources corev1.ResourceList `json:"defaultResources,omitempty"`
	// Devices are the names at Nomad of extended resources. Default: nvidia.com/gpu is nvidia/gpu.
	Devices map[string]string `json:"devices,omitempty"`
	// MaxPods is the maximum number of pods of the node. Default 1000.
	MaxPods int64 `json:"maxPods,omitempty"`
}

// TLS identifies the agent and the provider. The files are read again for each connection.
type TLS struct {
	// CAFile has the authorities for the agent's certificate. Default: the authorities of this machine.
	CAFile string `json:"caFile,omitempty" env:"NOMAD_CACERT"`
	// CertFile and KeyFile are the certificate of the provider.
	CertFile string `json:"certFile,omitempty" env:"NOMAD_CLIENT_CERT"`
	KeyFile  string `json:"keyFile,omitempty" env:"NOMAD_CLIENT_KEY"`
	// ServerName is the name in the agent's certificate, such as server.global.nomad. Default: the name in the
	// address.
	ServerName string `json:"serverName,omitempty" env:"NOMAD_TLS_SERVER_NAME"`
}

// format describes the configuration files of this provider.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_NOMAD", Renamed: map[string]string{"clusterID": "clusterName"}}

// LoadConfig reads the file at path, and overrides it by the environment. An empty path means no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// complete fills the defaults of c and refuses impossible values, with every reason.
func (c Config) complete() (Config, error) {
	problems := config.Problems{Provider: "nomad"}
	c.defaults()
	u, err := url.Parse(c.Address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		problems.Add("address: want an URL such as https://nomad.example:4646")
	} else if u.Scheme == "http" && c.TLS != (TLS{}) {
		problems.Add("tls: the address begins with http://")
	}
	problems.ClusterName(c.ClusterName, "VKUBELET_NOMAD_CLUSTER_NAME")
	for _, d := range c.Drivers {
		if d != DriverExec && d != DriverRawExec && d != DriverDocker {
			problems.Add("drivers: %q: want %s, %s or %s", d, DriverExec, DriverRawExec, DriverDocker)
		}
	}
	if c.Network != NetworkBridge && c.Network != NetworkHost {
		problems.Add("network: %q: want %s or %s", c.Network, NetworkBridge, NetworkHost)
	}
	if c.Priority < 1 || c.Priority > 100 {
		problems.Add("priority: %d: want 1 to 100", c.Priority)
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		problems.Add("tls: certFile and keyFile are only useful together")
	}
	for _, file := range []string{c.TLS.CAFile, c.TLS.CertFile, c.TLS.KeyFile} {
		if _, err := os.Stat(file); file != "" && err != nil {
			problems.Add("tls: %w", err)
		}
	}
	if c.RestartDelay.Duration < time.Second || c.LostAfter.Duration < time.Second {
		problems.Add("restartDelay and lostAfter are %s and %s: want 1s or more", c.RestartDelay.Duration, c.LostAfter.Duration)
	}
	if c.DefaultResources.Cpu().Sign() <= 0 || c.DefaultResources.Memory().Sign() <= 0 {
		problems.Add("defaultResources: want cpu and memory, both more than 0")
	}
	if c.MaxPods < 0 {
		problems.Add("maxPods: %d: want 1 or more", c.MaxPods)
	}
	return c, problems.Err()
}

func (c *Config) defaults() {
	c.Address = cmp.Or(c.Address, "http://127.0.0.1:4646")
	if !strings.Contains(c.Address, "://") {
		scheme := "http://"
		if c.TLS != (TLS{}) {
			scheme = "https://"
		}
		c.Address = scheme + c.Address
	}
	c.Namespace, c.NodePool, c.Network = cmp.Or(c.Namespace, "default"), cmp.Or(c.NodePool, "default"), cmp.Or(c.Network, NetworkBridge)
	if len(c.Datacenters) == 0 {
		c.Datacenters = []string{"*"}
	}
	if len(c.Drivers) == 0 {
		c.Drivers = []string{DriverDocker}
	}
	c.Priority, c.MaxPods = cmp.Or(c.Priority, 50), cmp.Or(c.MaxPods, 1000)
	c.RestartDelay.Duration = cmp.Or(c.RestartDelay.Duration, 10*time.Second)
	c.LostAfter.Duration = cmp.Or(c.LostAfter.Duration, 5*time.Minute)
	if c.DefaultResources == nil {
		c.DefaultResources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	}
	if c.Devices == nil {
		c.Devices = map[string]string{"nvidia.com/gpu": "nvidia/gpu"}
	}
}

// has reports whether the configuration allows one of the drivers.
func (c Config) has(drivers ...string) bool {
	return slices.ContainsFunc(c.Drivers, func(d string) bool { return slices.Contains(drivers, d) })
}

// owner is the owner of a job.
type owner struct{ cluster, node string }

// prefix begins the IDs of all jobs of the owner. The metadata of a job names its owner, because two owners can
// have the same eight digits.
func (o owner) prefix() string {
	sum := sha256.Sum256([]byte(o.cluster + "\x00" + o.node))
	return "vk-" + hex.EncodeToString(sum[:4]) + "-"
}

// jobID returns the ID of a pod's job.
func (o owner) jobID(uid string) string {
	if len(uid) > 36 || len(validation.IsDNS1123Label(uid)) > 0 {
		sum := sha256.Sum256([]byte(uid))
		uid = hex.EncodeToString(sum[:16])
	}
	return o.prefix() + uid
}
