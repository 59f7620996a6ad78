// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/websession"
)

// The version and the kind of a configuration file of this provider.
const (
	APIVersion = "interlink.virtual-kubelet.io/v1alpha1"
	Kind       = "InterLinkProviderConfiguration"
)

// DefaultStatusInterval is the default interval of requests for the states of pods.
const DefaultStatusInterval = time.Second

// Config is the configuration of the provider. A field that is one value or a list can also be set by an environment variable, such
// as VKUBELET_INTERLINK_URL. A file of interLink's own virtual kubelet is read too.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// URL is the address of the API server: https://host:port, http://host:port or unix:///path. Required.
	URL string `json:"url,omitempty"`
	// Token is sent as a bearer token. Default: none.
	Token config.Secret `json:"token,omitzero"`
	// TLS configures how this node and the server prove their identities with https.
	TLS TLS `json:"tls,omitzero"`
	// JobScriptURL is the service that the API server asks for the script of a job. Default: none.
	JobScriptURL string `json:"jobScriptURL,omitempty"`
	// KubernetesAPI is the address of this cluster's API server for jobs. Default: jobs get its address in the cluster.
	KubernetesAPI KubernetesAPI `json:"kubernetesAPI,omitzero"`
	// NoProjectedVolumes sends no files of projected volumes, and so no tokens.
	NoProjectedVolumes bool `json:"noProjectedVolumes,omitempty"`
	// Capacity is the capacity of the node where the plugin reports none. Default: 100 CPUs, 3000G of memory,
	// 10000 pods, and 20Gi of ephemeral-storage for each pod. No plugin reports ephemeral-storage.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Labels are additional labels of the node.
	Labels map[string]string `json:"labels,omitempty"`
	// Taints are additional taints of the node.
	Taints []corev1.Taint `json:"taints,omitempty"`
	// Features names the features of the plugin beyond those of every plugin, such as ExecProbes or RunAsUser.
	// The provider refuses pods that need other features. Default: none.
	Features []capability.Feature `json:"features,omitempty"`
	// StatusInterval is the interval of requests for the states of all pods while a pod runs. Default: DefaultStatusInterval.
	StatusInterval metav1.Duration `json:"statusInterval,omitempty"`

	earlier  time.Duration // how long after the start a plugin may repeat an answer from before the start; 0 means keptFor
	warnings []string      // about settings of interLink's own file that have no effect here
	upstream bool          // the file is a file of interLink's own virtual kubelet
}

// TLS are the files for https. They are read again for each connection.
type TLS struct {
	// CAFile holds the authorities for verifying the server. Default: the authorities of this machine.
	CAFile string `json:"caFile,omitempty"`
	// CertFile and KeyFile are the client certificate of this node and its key. Default: none.
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
}

// KubernetesAPI is the address of this cluster's API server as seen from outside.
type KubernetesAPI struct {
	// Address and Port are the values of KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in pods.
	Address string `json:"address,omitempty"`
	Port    string `json:"port,omitempty"`
	// CA is the certificate of the authority of this address, in PEM. Pods get CA instead of the content of the
	// ConfigMap kube-root-ca.crt.
	CA string `json:"ca,omitempty"`
}

// complete fills the defaults of c and refuses invalid configurations. The error lists every problem.
func (c Config) complete() (Config, error) {
	problems := config.Problems{Provider: "interlink"}
	problem := problems.Add
	u, err := url.Parse(c.URL)
	switch {
	case c.URL == "":
		problem("url: is missing: want that of the interLink API server, such as https://edge.example.com:3000")
	case err != nil:
		problem("url: %q is no URL", c.URL)
	case u.Scheme == "unix" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil:
		if u.Scheme == "http" && c.Token.IsSet() && !websession.IsLoopback(u.Hostname()) {
			c.warnings = append(c.warnings, "url: the bearer token goes to "+u.Host+" in clear text: use https")
		}
	default:
		problem("url: want https://host:port, http://host:port or unix:///path, without a password")
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		problem("tls: certFile or keyFile is missing: name both or none")
	}
	if err == nil && u.Scheme != "https" && c.TLS != (TLS{}) {
		problem("tls: the URL does not begin with https://")
	}
	if (c.KubernetesAPI.Address == "") != (c.KubernetesAPI.Port == "") {
		problem("kubernetesAPI: address or port is missing: name both or none")
	}
	for _, f := range c.Features {
		if why := never[f]; why != "" {
			problem("features: %s: %s", f, why)
		} else if !slices.Contains(capability.Features(), f) {
			problem("features: there is no feature %q", f)
		}
	}
	problems.Wait("statusInterval", &c.StatusInterval, DefaultStatusInterval)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100"), corev1.ResourceMemory: resource.MustParse("3000G"), corev1.ResourcePods: resource.MustParse("10000"),
	}
	for name, quantity := range c.Capacity {
		if quantity.Sign() < 0 {
			problem("capacity: %s is %s, want 0 or more", name, quantity.String())
		}
		capacity[name] = quantity
	}
	c.Capacity = storage.Offer(capacity, resource.MustParse("20Gi"))
	return c, problems.Err()
}

// never maps features that no plugin can have to the reason.
var never = map[capability.Feature]string{
	capability.InteractiveContainers: "the InterLink protocol has no attach",
	capability.EphemeralContainers:   "the InterLink protocol has no way to change a pod",
	capability.InPlaceResize:         "the InterLink protocol has no way to change a pod",
	capability.ResourceClaims:        "the InterLink protocol has no devices of the cluster",
	capability.PersistentVolume:      "the InterLink protocol carries the name of a claim, and nothing of its volume",
	capability.CSIVolumes:            "the InterLink protocol carries no volumes of drivers",
	capability.HostPath:              "no node of a batch system is a machine of the cluster: name paths of the site in annotations of its plugin",
	capability.CertificateFiles:      "the InterLink protocol sends files once, and these are renewed",
}
