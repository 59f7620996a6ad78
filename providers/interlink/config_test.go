// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// TestFileOfInterLink checks that a configuration file of interLink's own virtual kubelet means the same here,
// and that settings without a meaning here are reported.
func TestFileOfInterLink(t *testing.T) {
	t.Setenv("NODENAME", "vk")
	t.Setenv("CONFIGPATH", "testdata/upstream.yaml")
	c, err := LoadConfig("")
	if err == nil {
		c, err = c.complete()
	}
	if err != nil {
		t.Fatal(err)
	}
	if c.URL != "https://edge.example.com:3000" || c.JobScriptURL != "https://scripts.example.com" || !c.NoProjectedVolumes || !c.upstream ||
		c.KubernetesAPI.Address != "api.example.com" || c.KubernetesAPI.Port != "6443" || !strings.HasPrefix(c.KubernetesAPI.CA, "-----BEGIN") ||
		c.Token.Value(t.Context()) != "token-of-the-file" || c.TLS != (TLS{CAFile: "/etc/interlink-ca.pem", CertFile: "/etc/tls.crt", KeyFile: "/etc/tls.key"}) {
		t.Errorf("got %+v", c)
	}
	gpus := c.Capacity["nvidia.com/gpu"]
	if c.Capacity.Cpu().String() != "10" || c.Capacity.Memory().String() != "256Gi" || c.Capacity.Pods().Value() != 20 || gpus.Value() != 3 {
		t.Errorf("capacity: %v", c.Capacity)
	}
	if c.Labels["accelerator"] != "a100" || c.Labels["nvidia-gpu-type"] != "a100" || len(c.Taints) != 2 ||
		c.Taints[0].Effect != corev1.TaintEffectNoExecute || c.Taints[1].Effect != corev1.TaintEffectNoSchedule {
		t.Errorf("labels %v, taints %v", c.Labels, c.Taints)
	}
	said := strings.Join(c.warnings, "\n")
	for _, want := range []string{
		"HTTP.Insecure", "KubeletHTTP", "Namespace", "Network", "NodeLabels: \"wrong\"", "PodCIDR", "PodIP", "ServiceAccount", "VKConfigPath", "VerboseLogging",
		"no field Unheard", "variable NODENAME",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no warning names %s:\n%s", want, said)
		}
	}
}

// TestPublishedA8FilesOfTheChartStart loads the files that interLink's Helm chart 0.6.2-pre3 writes: by default,
// with a socket, and with OAuth, where another container writes the token. Settings without a meaning here are
// reported.
func TestPublishedA8FilesOfTheChartStart(t *testing.T) {
	t.Setenv("VKTOKENFILE", "/opt/interlink/token")
	t.Setenv("POD_IP", "192.0.2.7")
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "of-the-chart\n")
	data, err := os.ReadFile("testdata/chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, tt := range map[string]struct{ from, to, url, token string }{
		"default": {url: "http://127.0.0.1:4000"},
		"socket": {
			from: "InterlinkURL: \"http://127.0.0.1\"\nInterlinkPort: \"4000\"",
			to:   "InterlinkURL: \"unix:///var/run/interlink.sock\"\nInterlinkPort: \"unix:///var/run/interlink.sock-1\"", url: "unix:///var/run/interlink.sock",
		},
		"OAuth": {from: "VKTokenFile: /dev/null", to: "VKTokenFile: " + token, url: "http://127.0.0.1:4000", token: "of-the-chart"},
	} {
		if !strings.Contains(text, tt.from) {
			t.Fatalf("%s: the file lacks %q", name, tt.from)
		}
		path := filepath.Join(t.TempDir(), "InterLinkConfig.yaml")
		write(t, path, strings.Replace(text, tt.from, tt.to, 1))
		t.Setenv("CONFIGPATH", path)
		if _, err := Provider().New(t.Context(), cli.ProviderInput{NodeName: "virtual-node"}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		config, err := LoadConfig("")
		if err != nil {
			t.Fatal(err)
		}
		p, err := openProvider(cli.ProviderInput{NodeName: "virtual-node"}, config)
		if err != nil {
			t.Fatal(err)
		}
		var sent http.Header
		p.client.http.Transport = direct{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent = r.Header
			_, _ = io.WriteString(w, "[]")
		})}
		n := &corev1.Node{}
		p.ConfigureNode(t.Context(), n)
		want := ""
		if tt.token != "" {
			want = "Bearer " + tt.token
		}
		if p.driver.config.URL != tt.url || sent == nil || sent.Get("Authorization") != want {
			t.Errorf("%s: url %q, headers %v, want %q and the authorization %q", name, p.driver.config.URL, sent, tt.url, want)
		}
		if c := n.Status.Capacity; c.Cpu().String() != "8" || c.Memory().String() != "49Gi" || c.Pods().Value() != 100 {
			t.Errorf("%s: the node offers %v", name, c)
		}
		said := strings.Join(p.driver.config.warnings, "\n")
		for _, want := range []string{"ExportPodData", "DisableCSR", "variable VKTOKENFILE", "variable POD_IP"} {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no warning names %s:\n%s", name, want, said)
			}
		}
		if strings.Contains(said, "there is no field") {
			t.Errorf("%s: a field of the chart is not known:\n%s", name, said)
		}
	}
	path := filepath.Join(t.TempDir(), "InterLinkConfig.yaml")
	write(t, path, strings.Replace(text, "/dev/null", token+"-that-is-not-there", 1))
	t.Setenv("CONFIGPATH", path)
	if _, err := Provider().New(t.Context(), cli.ProviderInput{}); err == nil || !strings.Contains(err.Error(), "VKTokenFile") {
		t.Errorf("a token file that is not there: %v, want an error that names VKTokenFile", err)
	}
}

// TestConfigIsRefused checks that the error names each problem.
func TestConfigIsRefused(t *testing.T) {
	for want, c := range map[string]Config{
		"url: is missing":        {},
		"url: want https":        {URL: "ftp://host"},
		"without a password":     {URL: "https://user:secret@host"},
		"name both or none":      {URL: "https://host", TLS: TLS{CertFile: "x"}},
		"does not begin with":    {URL: "http://host", TLS: TLS{CAFile: "x"}},
		"kubernetesAPI: address": {URL: "http://host", KubernetesAPI: KubernetesAPI{Port: "1"}},
		"statusInterval: is -1s": {URL: "http://host", StatusInterval: metav1.Duration{Duration: -time.Second}},
		"features: there is no":  {URL: "http://host", Features: []capability.Feature{"Wings"}},
		"has no attach":          {URL: "http://host", Features: []capability.Feature{capability.InteractiveContainers}},
	} {
		if _, err := c.complete(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	c, err := Config{URL: "http://edge.example.com:3000", Token: config.Literal("t")}.complete()
	if err != nil || len(c.warnings) != 1 || !strings.Contains(c.warnings[0], "clear text") {
		t.Errorf("a token without TLS: %v, %q", err, c.warnings)
	}
}

// TestSettingsOfWarningsExist checks that each setting that a warning recommends exists. A removed setting would
// send users on a search.
func TestSettingsOfWarningsExist(t *testing.T) {
	flags := cli.Program{Name: "virtual-kubelet", Providers: []cli.Provider{Provider()}}.Command().PersistentFlags()
	setting := regexp.MustCompile(`--([a-z-]+)`)
	named := 0
	for _, instead := range []map[string]string{meaningless, meaninglessEnv} {
		for field, words := range instead {
			for _, match := range setting.FindAllStringSubmatch(words, -1) {
				named++
				if f := flags.Lookup(match[1]); f == nil || f.Deprecated != "" || f.Hidden {
					t.Errorf("%s: %q: there is no such setting, or it is old: %+v", field, words, f)
				}
			}
		}
	}
	if named < 10 {
		t.Errorf("%d settings are named: the test does not find them", named)
	}
}
