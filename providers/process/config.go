// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/images"
)

// What a configuration file of this provider says about itself.
const (
	APIVersion = "process.virtual-kubelet.io/v1alpha1"
	Kind       = "ProcessProviderConfiguration"
)

// Values of Config.Isolation.
const (
	// IsolationAuto is the strongest isolation that works, and an error if none does.
	IsolationAuto = "auto"
	// IsolationRequired is an error where containers cannot have namespaces of their own.
	IsolationRequired = "required"
	// IsolationNone runs programs of the machine, without images.
	IsolationNone = "none"
)

// Config is the configuration of the provider. A field that is one value or a list can also be set by an environment variable,
// such as VKUBELET_PROCESS_STATE_DIR.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// StateDir has images, containers, logs and volumes. Default: /var/lib/virtual-kubelet/process/NODE, or for a
	// user ~/.local/state/virtual-kubelet/process/NODE.
	StateDir string `json:"stateDir,omitempty"`
	// Images are directories with images, looked at before any registry: OCI layouts, and archives as
	// docker save and others write them.
	Images []string `json:"images,omitempty"`
	// InsecureRegistries are registries without TLS, as host:port.
	InsecureRegistries []string `json:"insecureRegistries,omitempty"`
	// RegistryMirrors are asked for images first, by the registry that they are in: docker.io, or host:port. A mirror is a
	// URL; it is asked without credentials, and what it does not have comes from the registry.
	RegistryMirrors map[string]string `json:"registryMirrors,omitempty"`
	// Isolation is auto, required or none. Default auto.
	Isolation string `json:"isolation,omitempty"`
	// Privileged allows containers that ask for it power over the machine: privileged ones, and
	// those in its namespaces.
	Privileged bool `json:"privileged,omitempty"`
	// HostPaths are the directories that volumes of the kind hostPath may be in. Default: none.
	HostPaths []string `json:"hostPaths,omitempty"`
	// PodNetwork is the file of a CNI network, for pods with a network and an address of their own. It needs the rights of
	// root. Default: every pod is in the network of the machine.
	PodNetwork string `json:"podNetwork,omitempty"`
	// CNIPlugins are the directories of the plugins of that network. Default: /opt/cni/bin and /usr/lib/cni.
	CNIPlugins []string `json:"cniPlugins,omitempty"`
	// ClusterDNS are the addresses of the cluster's DNS servers. Default: pods get the machine's.
	ClusterDNS []string `json:"clusterDNS,omitempty"`
}

// format is what a configuration file of this provider looks like.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_PROCESS"}

// LoadConfig returns what the file at path says, and the environment above it. An empty path is no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// complete fills the defaults of c and refuses what cannot be.
func (c Config) complete(nodeName string) (Config, error) {
	switch c.Isolation {
	case "":
		c.Isolation = IsolationAuto
	case IsolationAuto, IsolationRequired, IsolationNone:
	default:
		return c, fmt.Errorf("process provider: isolation %q: want %s, %s or %s", c.Isolation, IsolationAuto, IsolationRequired, IsolationNone)
	}
	if c.StateDir == "" {
		dir, err := defaultStateDir()
		if err != nil {
			return c, err
		}
		c.StateDir = filepath.Join(dir, nodeName)
	}
	var err error
	if c.StateDir, err = filepath.Abs(c.StateDir); err != nil {
		return c, fmt.Errorf("process provider: stateDir: %w", err)
	}
	if strings.ContainsAny(c.StateDir, ",:\\") {
		return c, fmt.Errorf("process provider: stateDir %q: the kernel's options for mounts have no place for a comma, colon or backslash", c.StateDir)
	}
	for registry, mirror := range c.RegistryMirrors {
		if err := images.CheckMirror(mirror); err != nil {
			return c, fmt.Errorf("process provider: registryMirrors: %s: %w", registry, err)
		}
	}
	for _, dir := range c.Images {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return c, errors.Join(fmt.Errorf("process provider: images: want a directory with images at %q", dir), err)
		}
	}
	return c, nil
}

func defaultStateDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/virtual-kubelet/process", nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "virtual-kubelet", "process"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("process provider: set stateDir: %w", err)
	}
	return filepath.Join(home, ".local", "state", "virtual-kubelet", "process"), nil
}
