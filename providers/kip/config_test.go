// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/delivery"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/ec2"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/nova"
)

func load(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "provider.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadConfig(path)
}

// TestKipProviderYAML: LoadConfig reads the file of Kip, the environment adds to it, and an error names each unsupported field.
func TestKipProviderYAML(t *testing.T) {
	t.Setenv("VKUBELET_KIP_CLUSTER_NAME", "home")
	const file = `
apiVersion: v1
cloud: {aws: {region: us-east-1, vpcID: vpc-1, subnetID: subnet-1, endpointURL: "https://ec2.example.com"}}
etcd: {internal: {dataDir: /opt/kip/data}}
kubelet: {cpu: "64", memory: 512Gi, pods: "40", capacity: {nvidia.com/gpu: "2"}}
cells:
  nametag: kip
  defaultInstanceType: t3.nano
  defaultVolumeSize: 5Gi
  bootImageSpec: {imageIDs: ami-1 ami-2}
  standbyCells: [{instanceType: t3.nano, count: 2, spot: true}]
  extraSecurityGroups: [sg-246810]
  privateIPOnly: true
  defaultIAMPermissions: cell
  statusInterval: 5
  healthcheck: {status: {healthyTimeout: 90}}
`
	c, err := load(t, file)
	if err == nil {
		c, err = c.complete()
	}
	if err != nil {
		t.Fatal(err)
	}
	if c.EC2.SubnetID != "subnet-1" || c.EC2.Endpoint != "https://ec2.example.com" || c.EC2.SecurityGroups[0] != "sg-246810" || c.EC2.InstanceProfile != "cell" {
		t.Errorf("ec2: %+v", c.EC2)
	}
	if c.ClusterName != "home" || c.Image != "ami-1" || c.DefaultType != "t3.nano" || c.VolumeGiB != 5 || !c.PrivateIPOnly || c.Tags["KipNametag"] != "kip" || c.MaxMachines != 42 {
		t.Errorf("got %+v", c)
	}
	if len(c.Standby) != 1 || c.Standby[0] != (Standby{"t3.nano", 2, true}) {
		t.Errorf("standby: %+v", c.Standby)
	}
	if memory, gpus := c.Capacity[corev1.ResourceMemory], c.Capacity["nvidia.com/gpu"]; memory.String() != "512Gi" || gpus.Value() != 2 {
		t.Errorf("capacity: %v", c.Capacity)
	}
	for field, change := range map[string][2]string{
		"etcd.client":                     {"etcd: {", "etcd: {client: {endpoints: [a]}, "},
		"cloud.aws.accessKeyID":           {"vpcID: vpc-1", "accessKeyID: AK"},
		"cloud.aws.ecsClusterName":        {"vpcID: vpc-1", "ecsClusterName: c"},
		"cloud.aws.insecureTLSSkipVerify": {"vpcID: vpc-1", "insecureTLSSkipVerify: true"},
		"cloud.aws":                       {"cloud: {aws:", "cloud: {gce:"},
		"cells.itzo":                      {"  nametag: kip", "  itzo: {version: \"532\"}"},
		"cells.cellConfig":                {"  nametag: kip", "  cellConfig: {a: b}"},
		"cells.useCloudParameterStore":    {"  nametag: kip", "  useCloudParameterStore: true"},
		"cells.cloudInitFile":             {"  nametag: kip", "  cloudInitFile: /etc/kip/cloudinit.yml"},
		"cells.extraCIDRs":                {"  nametag: kip", "  extraCIDRs: [10.0.0.0/8]"},
		"cells.bootImageSpec.imageIDs":    {"imageIDs: ami-1 ami-2", `owners: "689494258501"`},
		"imageIDs: name an image":         {"imageIDs: ami-1 ami-2", `imageIDs: " "`},
		"unknown field":                   {"  nametag: kip", "  nametags: kip"},
	} {
		if _, err := load(t, strings.Replace(file, change[0], change[1], 1)); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v, want an error that names it", field, err)
		}
	}
}

// TestTableOfEC2: the table has the prices of its source, and a pod gets the cheapest type with room.
func TestTableOfEC2(t *testing.T) {
	prices := map[string]string{}
	for _, typ := range ec2Types() {
		prices[typ.Name] = typ.Price.String()
	}
	for name, want := range map[string]string{"c5.4xlarge": "0.68", "m5.2xlarge": "0.384", "r5.xlarge": "0.252", "t3.xlarge": "0.1664"} {
		if w := resource.MustParse(want); prices[name] != w.String() {
			t.Errorf("%s costs %s, want %s", name, prices[name], w.String())
		}
	}
	for memory, want := range map[string]string{"352Mi": "t3.nano", "512Mi": "t3.micro", "8Gi": "r5.large"} { // a machine needs memory for itself
		w, err := Config{Types: ec2Types()}.wishOf(aPod(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}, nil))
		if err != nil || w.types[0].Name != want {
			t.Errorf("%s: got %v, %v, want %s", memory, w.types, err, want)
		}
	}
	w, err := Config{Types: ec2Types()}.wishOf(aPod(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3"), corev1.ResourceMemory: resource.MustParse("6Gi")}, nil))
	if err != nil || w.types[0].Name != "t3.xlarge" {
		t.Errorf("got %v, %v", w.types, err)
	}
}

// TestConfigurationsThatAreRefused: the error has every reason.
func TestConfigurationsThatAreRefused(t *testing.T) {
	_, err := Config{Types: []Type{{Name: "a"}}, Standby: []Standby{{Type: "b", Count: 1}}, DefaultType: "c"}.complete()
	if err == nil {
		t.Fatal("it is taken")
	}
	for _, want := range []string{"clusterName: ", "qemu, ec2, nova: want one of them", "image: ", "types[0]: ", "defaultType: ", "standby[0]: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: does not say %s", err, want)
		}
	}
	c := testConfig("home")
	c.Containers, c.QEMU, c.EC2, c.SSH = "", nil, &ec2.Config{SubnetID: "subnet-1"}, &delivery.Config{Agent: "vk-cell", User: "debian"}
	if _, err := c.complete(); err != nil {
		t.Error(err)
	}
	c.Containers = programs
	if _, err := c.complete(); err == nil || !strings.Contains(err.Error(), "containers: unpack") {
		t.Errorf("programs beside the services of a stock image: %v", err)
	}
}

// TestNovaConfiguration: Nova needs a network, and has neither spot machines nor instance profiles.
func TestNovaConfiguration(t *testing.T) {
	c := testConfig("home")
	c.QEMU, c.Nova, c.InstanceProfiles = nil, &nova.Config{}, []string{"p"}
	_, err := c.complete()
	for _, want := range []string{"nova.networkID: ", "instanceProfiles, standby: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: does not say %s", err, want)
		}
	}
	c.Nova.NetworkID, c.InstanceProfiles = "11111111-2222-4333-8444-555555555555", nil
	if c, err = c.complete(); err != nil {
		t.Fatal(err)
	}
	if err := c.check(aPod(nil, map[string]string{annotationLaunch: "spot"})); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "Nova has no spot machines") {
		t.Errorf("a spot machine of Nova: %v", err)
	}
}

// TestEgressOfQEMUIsRefused: a guest with egress would reach the loopback of the host. The error says so, and gives a remedy.
func TestEgressOfQEMUIsRefused(t *testing.T) {
	c := testConfig("home")
	if _, err := c.complete(); err != nil {
		t.Fatal(err)
	}
	c.QEMU = &QEMU{Egress: true}
	_, err := c.complete()
	if err == nil || !strings.Contains(err.Error(), "qemu.egress: ") || !strings.Contains(err.Error(), "loopback of this host") || !strings.Contains(err.Error(), "remove the field") {
		t.Errorf("got %v", err)
	}
}
