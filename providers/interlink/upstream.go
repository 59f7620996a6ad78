// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// upstreamFile is the configuration file of interLink's own virtual kubelet.
type upstreamFile struct {
	InterlinkURL            string
	InterlinkPort           text
	KubernetesAPIAddr       string `json:"KubernetesApiAddr"`
	KubernetesAPIPort       text   `json:"KubernetesApiPort"`
	KubernetesAPICaCrt      string `json:"KubernetesApiCaCrt"`
	DisableProjectedVolumes bool
	JobScriptBuilderURL     string
	VKTokenFile             string
	HTTP                    struct {
		Insecure bool
		CaCert   string
	}
	Resources struct {
		CPU, Memory, Pods text
		Accelerators      []struct {
			ResourceType, Model string
			Available           int
		}
	}
	NodeLabels []string
	NodeTaints []struct{ Key, Value, Effect string }
	TLS        struct {
		Enabled                       bool
		CertFile, KeyFile, CACertFile string
	}
	Network struct{ EnableTunnel, FullMesh bool }
	// Features is a field of this provider. Users add it to their existing file.
	Features []capability.Feature
}

// meaningless maps fields of that file without an effect here to the setting that replaces them.
var meaningless = map[string]string{
	"VKConfigPath": "name the file with --provider-config", "ServiceAccount": "the node has the rights of its own credentials",
	"Namespace": "the pods of a node are in all namespaces", "PodIP": "the address of the node is --node-ip", "PodCIDR": "no addresses are made up for pods",
	"VerboseLogging": "set --log-level debug", "ErrorsOnlyLogging": "set --log-level error",
	"KubeletHTTP": "the server of the node has its own settings", "KubeletCertFile": "set --tls-cert-file",
	"KubeletKeyFile": "set --tls-private-key-file", "KubeletCSRSignerName": "certificates are asked for from kubernetes.io/kubelet-serving",
	"SkipDownwardAPIResolution": "it is always resolved", "DisableCSR": "set --tls-cert-file and --tls-private-key-file", "Pprof": "set --enable-profiling",
	"ExportPodData": "it is a setting of the interLink API server",
}

// meaninglessEnv maps environment variables of interLink's virtual kubelet without an effect here to their
// replacements.
var meaninglessEnv = map[string]string{
	"NODENAME": "set --nodename", "POD_IP": "set --node-ip", "KUBELET_URL": "set --listen-address", "ENABLE_TRACING": "set --trace-endpoint",
	"ENABLE_PPROF": "set --enable-profiling", "TELEMETRY_ENDPOINT": "set --trace-endpoint", "PPROF_ADDRESS": "set --enable-profiling",
	"PPROF_PORT": "set --enable-profiling", "VKTOKENFILE": "name the file in the field VKTokenFile, or in token.file",
}

// text is a value that files write as a string or as a number.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(data []byte) error {
	if unquoted, err := strconv.Unquote(string(data)); err == nil {
		data = []byte(unquoted)
	}
	*t = text(data)
	return nil
}

// readUpstream reads a file of interLink's own virtual kubelet. A warning names each field that has no effect
// here.
func readUpstream(name string, data []byte) (Config, error) {
	var f upstreamFile
	var given map[string]any
	if err := yaml.Unmarshal(data, &given); err != nil {
		return Config{}, fmt.Errorf("%s: %w", name, err)
	}
	if err := yaml.Unmarshal(data, &f); err != nil {
		return Config{}, fmt.Errorf("%s: %w", name, err)
	}
	c := Config{
		URL: f.InterlinkURL, JobScriptURL: f.JobScriptBuilderURL, NoProjectedVolumes: f.DisableProjectedVolumes, upstream: true, Features: f.Features,
		KubernetesAPI: KubernetesAPI{Address: f.KubernetesAPIAddr, Port: string(f.KubernetesAPIPort), CA: f.KubernetesAPICaCrt},
	}
	if f.InterlinkPort != "" && !strings.HasPrefix(c.URL, "unix:") {
		c.URL += ":" + string(f.InterlinkPort)
	}
	if c.KubernetesAPI.Address == "" || c.KubernetesAPI.Port == "" { // one without the other is ignored there, too
		c.KubernetesAPI.Address, c.KubernetesAPI.Port = "", ""
	}
	if f.VKTokenFile != "" && f.VKTokenFile != os.DevNull { // interLink's chart names the null device where there is no token
		if err := c.Token.UnmarshalJSON([]byte(`{"file":` + strconv.Quote(f.VKTokenFile) + `}`)); err != nil {
			return c, fmt.Errorf("%s: VKTokenFile: %w", name, err)
		}
	}
	c.upstreamTLS(f)
	if err := c.upstreamNode(f); err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	for _, field := range slices.Sorted(maps.Keys(given)) {
		if instead := meaningless[field]; instead != "" {
			c.warnings = append(c.warnings, fmt.Sprintf("%s: %s has no meaning here: %s", name, field, instead))
		} else if !known[field] {
			c.warnings = append(c.warnings, fmt.Sprintf("%s: there is no field %s", name, field))
		}
	}
	for _, variable := range slices.Sorted(maps.Keys(meaninglessEnv)) {
		if os.Getenv(variable) != "" {
			c.warnings = append(c.warnings, fmt.Sprintf("the environment variable %s has no meaning here: %s", variable, meaninglessEnv[variable]))
		}
	}
	return c, nil
}

// known lists the fields that have an effect here.
var known = map[string]bool{
	"InterlinkURL": true, "InterlinkPort": true, "KubernetesApiAddr": true, "KubernetesApiPort": true, "KubernetesApiCaCrt": true,
	"DisableProjectedVolumes": true, "JobScriptBuilderURL": true, "VKTokenFile": true, "HTTP": true, "Resources": true, "NodeLabels": true,
	"NodeTaints": true, "TLS": true, "Network": true, "Features": true,
}

func (c *Config) upstreamTLS(f upstreamFile) {
	if strings.HasPrefix(c.URL, "https://") {
		if f.TLS.Enabled {
			c.TLS = TLS{CAFile: f.TLS.CACertFile, CertFile: f.TLS.CertFile, KeyFile: f.TLS.KeyFile}
		}
		if c.TLS.CAFile == "" {
			c.TLS.CAFile = f.HTTP.CaCert
		}
	}
	if f.HTTP.Insecure {
		c.warnings = append(c.warnings, "HTTP.Insecure has no meaning here: the certificate of the server is verified; name its authority in HTTP.CaCert")
	}
	if f.Network.EnableTunnel || f.Network.FullMesh {
		c.warnings = append(c.warnings, "Network: no tunnels are made: pods have the network of their site")
	}
}

func (c *Config) upstreamNode(f upstreamFile) error {
	c.Capacity = corev1.ResourceList{}
	for name, quantity := range map[corev1.ResourceName]text{corev1.ResourceCPU: f.Resources.CPU, corev1.ResourceMemory: f.Resources.Memory, corev1.ResourcePods: f.Resources.Pods} {
		if quantity == "" {
			continue
		}
		parsed, err := resource.ParseQuantity(string(quantity))
		if err != nil {
			return fmt.Errorf("field Resources: %s is %q, want a quantity", name, string(quantity))
		}
		c.Capacity[name] = parsed
	}
	c.Labels = map[string]string{}
	for _, a := range f.Resources.Accelerators {
		have := c.Capacity[corev1.ResourceName(a.ResourceType)]
		have.Add(*resource.NewQuantity(int64(a.Available), resource.DecimalSI))
		c.Capacity[corev1.ResourceName(a.ResourceType)] = have
		if label := deviceLabels[strings.ToLower(a.ResourceType)]; label != "" && a.Model != "" {
			c.Labels[label] = a.Model
		}
	}
	for _, label := range f.NodeLabels {
		key, value, found := strings.Cut(label, "=")
		if !found {
			c.warnings = append(c.warnings, fmt.Sprintf("NodeLabels: %q is left out: want key=value", label))
			continue
		}
		c.Labels[key] = value
	}
	for _, t := range f.NodeTaints {
		effect := corev1.TaintEffect(t.Effect)
		if effect != corev1.TaintEffectPreferNoSchedule && effect != corev1.TaintEffectNoExecute {
			effect = corev1.TaintEffectNoSchedule // interLink also treats every other word as NoSchedule
		}
		c.Taints = append(c.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: effect})
	}
	return nil
}

// deviceLabels maps the resource of a device to the node label with its model.
var deviceLabels = map[string]string{"nvidia.com/gpu": "nvidia-gpu-type", "xilinx.com/fpga": "xilinx-fpga-type", "intel.com/fpga": "intel-fpga-type"}
