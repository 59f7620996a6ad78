// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goodConfig = `
apiVersion: eci.virtual-kubelet.io/v1alpha1
kind: ECIProviderConfiguration
region: cn-hangzhou
accessKeyID: AK
accessKeySecret: SK
clusterName: home
vSwitchIDs: [vsw-1]
securityGroupID: sg-1
capacity: {cpu: "20", memory: 100Gi, pods: "20"}
`

func loaded(t *testing.T, text string) (Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "eci.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(file)
	if err != nil {
		return c, err
	}
	return c.complete()
}

func TestConfig(t *testing.T) {
	c, err := loaded(t, goodConfig)
	if err != nil || c.Endpoint != "https://eci.cn-hangzhou.aliyuncs.com" || c.DefaultResources.Cpu().String() != "1" {
		t.Errorf("got %+v, %v", c, err)
	}
	for name, tt := range map[string]struct{ old, new, says string }{
		"no region":             {"region: cn-hangzhou", "", "region: "},
		"a plain endpoint":      {"region: cn-hangzhou", "region: cn-hangzhou\nendpoint: http://eci", "endpoint: "},
		"no switch":             {"vSwitchIDs: [vsw-1]", "", "vSwitchIDs: "},
		"no group":              {"securityGroupID: sg-1", "", "securityGroupID: "},
		"no cluster":            {"clusterName: home", "", "clusterName: "},
		"no capacity":           {`capacity: {cpu: "20", memory: 100Gi, pods: "20"}`, "", "capacity: "},
		"half a key":            {"accessKeySecret: SK", "", "one of them is missing"},
		"two credentials":       {"accessKeyID: AK", "accessKeyID: AK\ninstanceRole: {name: vk}", "more than one"},
		"no credentials":        {"accessKeyID: AK\naccessKeySecret: SK", "", "accessKeyID and accessKeySecret are missing"},
		"OIDC without a file":   {"accessKeyID: AK\naccessKeySecret: SK", "oidc: {roleARN: r, providerARN: p}", "tokenFile"},
		"a wrong annotation":    {"clusterName: home", "clusterName: home\nannotations: [k8s.aliyun.com/eci-new]", "annotations[0]"},
		"a role and no names":   {"clusterName: home", "clusterName: home\nannotations: [k8s.aliyun.com/eci-ram-role-name]", "ramRoles: "},
		"groups, no annotation": {"clusterName: home", "clusterName: home\nsecurityGroupIDs: [sg-2]", "securityGroupIDs: "},
		"a size too large":      {"clusterName: home", "clusterName: home\ndefaultResources: {cpu: \"65\", memory: 1Gi}", "no size with"},
		"an unknown field":      {"clusterName: home", "clusterName: home\nclusterNames: home", "clusterNames"},
	} {
		if _, err := loaded(t, strings.Replace(goodConfig, tt.old, tt.new, 1)); err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "SK") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestEndpointOfSTS: since 0.4.0, the add-on ack-pod-identity-webhook sets the variables, the first of them
// without a scheme.
func TestEndpointOfSTS(t *testing.T) {
	for name, c := range map[string]struct{ endpoint, region, vpc, file, want string }{
		"none":                  {"", "", "", "", "https://sts.cn-hangzhou.aliyuncs.com"},
		"inside the VPC":        {"", "", "True", "", "https://sts-vpc.cn-hangzhou.aliyuncs.com"},
		"not inside":            {"", "", "false", "", "https://sts.cn-hangzhou.aliyuncs.com"},
		"the cluster elsewhere": {"", "cn-beijing", "true", "", "https://sts-vpc.cn-beijing.aliyuncs.com"},
		"of the add-on":         {"sts-vpc.cn-beijing.aliyuncs.com", "cn-beijing", "true", "", "https://sts-vpc.cn-beijing.aliyuncs.com"},
		"with a scheme":         {"https://sts.example/", "", "true", "", "https://sts.example"},
		"without encryption":    {"http://sts.example", "", "", "", ""},
		"the file says it":      {"sts-vpc.cn-beijing.aliyuncs.com", "cn-beijing", "true", ", endpoint: 'https://sts.example'", "https://sts.example"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("ALIBABA_CLOUD_STS_ENDPOINT", c.endpoint)
			t.Setenv("ALIBABA_CLOUD_STS_REGION", c.region)
			t.Setenv("ALIBABA_CLOUD_VPC_ENDPOINT_ENABLED", c.vpc)
			got, err := loaded(t, strings.Replace(goodConfig, "accessKeyID: AK\naccessKeySecret: SK", "oidc: {roleARN: r, providerARN: p, tokenFile: f"+c.file+"}", 1))
			if c.want == "" && (err == nil || !strings.Contains(err.Error(), "oidc.endpoint")) || c.want != "" && (err != nil || got.OIDC.Endpoint != c.want) {
				t.Errorf("got %q, %v, want %q", got.OIDC.Endpoint, err, c.want)
			}
		})
	}
}

// TestEnvironmentOfOthers sets variables of earlier versions of this provider and of the vendor's tools.
func TestEnvironmentOfOthers(t *testing.T) {
	for name, value := range map[string]string{
		"ECI_REGION": "cn-beijing", "ECI_CLUSTER_NAME": "c", "ECI_VSWITCH": "vsw-7", "ECI_SECURITY_GROUP": "sg-7", "ECI_ACCESS_KEY": "AK", "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "SK",
	} {
		t.Setenv(name, value)
	}
	c, err := LoadConfig("")
	if err != nil || c.Region != "cn-beijing" || c.ClusterName != "c" || len(c.VSwitchIDs) != 1 || c.SecurityGroupID != "sg-7" ||
		c.AccessKeyID.Value(t.Context()) != "AK" || c.AccessKeySecret.Value(t.Context()) != "SK" {
		t.Errorf("got %+v, %v", c, err)
	}
}
