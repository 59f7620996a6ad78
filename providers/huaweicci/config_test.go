// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

func smallest() Config {
	return Config{
		Region: "cn-north-4", ProjectID: "p", ClusterName: "home-1", AccessKey: config.Literal("AK"), SecretKey: config.Literal("SK"),
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20")},
	}
}

func TestConfigRefusesWhatCannotBe(t *testing.T) {
	if _, err := (Config{}).completeConfig(); err == nil || strings.Count(err.Error(), "\n") < 4 {
		t.Errorf("an empty configuration: got %v, want every problem", err)
	}
	for want, change := range map[string]func(*Config){
		"endpoint: \"http://":      func(c *Config) { c.Endpoint = "http://cci.example.com" },
		"endpoint: \"\"":           func(c *Config) { c.Region = "" },
		"api: \"3.0\"":             func(c *Config) { c.API = "3.0" },
		"projectID":                func(c *Config) { c.ProjectID = "" },
		"clusterName: \"A\"":       func(c *Config) { c.ClusterName = "A" },
		"namespace: \"B\"":         func(c *Config) { c.Namespace = "B" },
		"accessKey and secretKey":  func(c *Config) { c.SecretKey = config.Secret{} },
		"iam: requests are signed": func(c *Config) { c.IAM.User = "node" },
		"iam: domain or password":  func(c *Config) { c.AccessKey, c.SecretKey, c.IAM.User = config.Secret{}, config.Secret{}, "node" },
		"iam.endpoint": func(c *Config) {
			c.AccessKey, c.SecretKey = config.Secret{}, config.Secret{}
			c.IAM = IAM{User: "node", Domain: "d", Password: config.Literal("p"), Endpoint: "http://iam.example.com"}
		},
		"network: domainID": func(c *Config) { c.Network.Subnets = []string{"s"} },
		"network: is made with": func(c *Config) {
			c.API, c.Network = API10, Network{DomainID: "d", Subnets: []string{"s"}, SecurityGroups: []string{"g"}}
		},
		"defaultResources: want": func(c *Config) { c.DefaultResources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")} },
		"defaultResources: CCI": func(c *Config) {
			c.DefaultResources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("65"), corev1.ResourceMemory: resource.MustParse("1Gi")}
		},
		"capacity: is missing": func(c *Config) { c.Capacity = nil },
		"capacity: cpu is -1":  func(c *Config) { c.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("-1")} },
		"qps":                  func(c *Config) { c.QPS = -1 },
	} {
		c := smallest()
		change(&c)
		if _, err := c.completeConfig(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
	c, err := smallest().completeConfig()
	if err != nil || c.Endpoint != "https://cci.cn-north-4.myhuaweicloud.com" || c.API != API20 || c.Namespace != "vk-home-1" || c.QPS != DefaultQPS || c.Burst != DefaultBurst {
		t.Errorf("the smallest configuration is %+v (%v)", c, err)
	}
	c = smallest()
	c.AccessKey, c.SecretKey, c.IAM = config.Secret{}, config.Secret{}, IAM{User: "node", Domain: "d", Password: config.Literal("p")}
	if c, err = c.completeConfig(); err != nil || c.IAM.Endpoint != "https://iam.cn-north-4.myhuaweicloud.com" {
		t.Errorf("with a user of IAM: %+v (%v)", c.IAM, err)
	}
}

// TestRegionWithADomainOfItsOwn checks the endpoints of a region with a separate domain: a user of Dublin
// reached no service.
func TestRegionWithADomainOfItsOwn(t *testing.T) {
	c := smallest()
	c.Region, c.AccessKey, c.SecretKey = "eu-west-101", config.Secret{}, config.Secret{}
	c.IAM = IAM{User: "node", Domain: "d", Password: config.Literal("p")}
	c, err := c.completeConfig()
	if err != nil || c.Endpoint != "https://cci.eu-west-101.myhuaweicloud.eu" || c.IAM.Endpoint != "https://iam.eu-west-101.myhuaweicloud.eu" {
		t.Errorf("got %s and %s (%v)", c.Endpoint, c.IAM.Endpoint, err)
	}
}

func TestConfigOfTheReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	dir := t.TempDir()
	for _, name := range []string{"access-key", "secret-key"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("hidden-"+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "cci.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(block, "/etc/virtual-kubelet", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(file)
	if err == nil {
		c, err = c.completeConfig()
	}
	if err != nil || c.SecretKey.Value(t.Context()) != "hidden-secret-key" || c.Network.Name != "vk" {
		t.Errorf("the configuration of the README is %+v (%v)", c, err)
	}
	if shown := fmt.Sprintf("%+v %#v", c, c); strings.Contains(shown, "hidden-") {
		t.Errorf("a secret is shown: %s", shown)
	}
	t.Setenv("HUAWEICLOUD_SDK_AK", "from-the-environment")
	if c, err = LoadConfig(file); err != nil || c.AccessKey.Value(t.Context()) != "from-the-environment" {
		t.Errorf("the environment is above the file: got %q (%v)", c.AccessKey.Value(t.Context()), err)
	}
}

func TestAnnotationsAreNamed(t *testing.T) {
	c := Config{Annotations: []string{"note", "*"}}
	for key, want := range map[string]bool{"note": true, "yangtse.io/pod-with-eip": true, annotationSize: false, annotationType: false} {
		if got := c.showsAnnotation(key); got != want {
			t.Errorf("annotation %s: shown %t, want %t", key, got, want)
		}
	}
	if (Config{}).showsAnnotation("yangtse.io/pod-with-eip") {
		t.Error("an annotation that nobody named is shown")
	}
}
