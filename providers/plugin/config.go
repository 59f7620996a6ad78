// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// The version and the kind of a configuration file of this provider.
const (
	APIVersion = "plugin.virtual-kubelet.io/v1alpha1"
	Kind       = "PluginProviderConfiguration"
)

// DefaultStartTimeout is the default of Config.StartTimeout.
const DefaultStartTimeout = 30 * time.Second

// Config is the configuration of the provider. Environment variables such as VKUBELET_PLUGIN_ENDPOINT can also
// set fields with one value.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Endpoint is the address of the plugin: unix:///PATH or tls://HOST:PORT. The socket at PATH must have the
	// mode 0600 and belong to root or to the user of this process. Required.
	Endpoint string `json:"endpoint,omitempty"`
	// TLS is required for an endpoint tls://, and for no other.
	TLS *TLS `json:"tls,omitempty"`
	// StartTimeout is how long the start waits for the plugin. Default DefaultStartTimeout.
	StartTimeout metav1.Duration `json:"startTimeout,omitempty"`
	// MaxMessageBytes is the size limit of a message, such as a pod. Default 16 MiB. The plugin has its own
	// limit.
	MaxMessageBytes int `json:"maxMessageBytes,omitempty"`
}

// TLS has the paths of the files for mutual TLS. They are read again for each connection.
type TLS struct {
	// CAFile has the certificate authorities for the plugin. Required.
	CAFile string `json:"caFile,omitempty"`
	// CertFile and KeyFile are the client certificate of this node and its key. Required.
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
	// ServerName is the name in the certificate of the plugin. Default: the host of the endpoint.
	ServerName string `json:"serverName,omitempty"`
}

// format describes the configuration file of this provider.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_PLUGIN"}

// LoadConfig reads the configuration file at path; environment variables override it. If path is empty,
// LoadConfig reads no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// target is a parsed endpoint.
type target struct {
	network, address string
	tls              *TLS
}

// withDefaults fills the defaults of c and refuses invalid configurations.
func (c Config) withDefaults() (Config, target, error) {
	to, err := c.parseTarget()
	switch {
	case err != nil:
		return c, to, fmt.Errorf("plugin provider: endpoint %q: %w", c.Endpoint, err)
	case c.StartTimeout.Duration < 0:
		return c, to, fmt.Errorf("plugin provider: startTimeout is %v, want 0 for the default, or more", c.StartTimeout.Duration)
	case c.MaxMessageBytes < 0:
		return c, to, fmt.Errorf("plugin provider: maxMessageBytes is %d, want 0 for the default, or more", c.MaxMessageBytes)
	}
	if c.StartTimeout.Duration == 0 {
		c.StartTimeout.Duration = DefaultStartTimeout
	}
	if c.MaxMessageBytes == 0 {
		c.MaxMessageBytes = wire.DefaultMaxMessageBytes
	}
	return c, to, nil
}

func (c Config) parseTarget() (target, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil || c.Endpoint == "" {
		return target{}, errors.New("want unix:///PATH or tls://HOST:PORT; set it in the file of --provider-config or in VKUBELET_PLUGIN_ENDPOINT")
	}
	switch {
	case u.Scheme == "unix" && u.Host == "" && filepath.IsAbs(u.Path):
		if c.TLS != nil {
			return target{}, errors.New("a socket has no TLS: remove tls")
		}
		return target{network: "unix", address: u.Path}, nil
	case u.Scheme == "tls" && u.Path == "" && u.Port() != "" && u.Hostname() != "":
		if c.TLS == nil || c.TLS.CAFile == "" || c.TLS.CertFile == "" || c.TLS.KeyFile == "" {
			return target{}, errors.New("both sides need a certificate: set tls.caFile, tls.certFile and tls.keyFile")
		}
		t := *c.TLS
		if t.ServerName == "" {
			t.ServerName = u.Hostname()
		}
		return target{network: "tcp", address: net.JoinHostPort(u.Hostname(), u.Port()), tls: &t}, nil
	}
	return target{}, errors.New("want unix:///PATH or tls://HOST:PORT")
}
