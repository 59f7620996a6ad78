// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/providers/aci"
	"github.com/virtual-kubelet/virtual-kubelet/providers/azurebatch"
	"github.com/virtual-kubelet/virtual-kubelet/providers/eci"
	"github.com/virtual-kubelet/virtual-kubelet/providers/fargate"
	"github.com/virtual-kubelet/virtual-kubelet/providers/huaweicci"
	"github.com/virtual-kubelet/virtual-kubelet/providers/nomad"
	"github.com/virtual-kubelet/virtual-kubelet/providers/stackpath"
	"github.com/virtual-kubelet/virtual-kubelet/providers/zun"
)

// ofTools matches variables that the tools of a service use today, and one variable of this program.
var ofTools = regexp.MustCompile(`^(AZURE_(TENANT|CLIENT|SUBSCRIPTION|FEDERATED|AUTHORITY)_.*|AWS_REGION|ALIBABA_CLOUD_.*|NOMAD_.*|HUAWEICLOUD_SDK_.*|OS_(CLOUD|CLIENT_CONFIG_FILE|INTERFACE|CACERT|(USER|PROJECT)_DOMAIN_.*)|ACI_CLUSTER_NAME)$`)

// Sources: github.com/virtual-kubelet/virtual-kubelet, providers/register (0.4); the READMEs of azure-aci, aws-fargate, alibabacloud-eci, nomad and tensile-kube.
func TestPublishedD6NamesOfProvidersAreKnown(t *testing.T) {
	for name, want := range map[string]string{
		"azure": "aci", "azurebatch": "azurebatch", "aws": "fargate", "alibabacloud": "eci", "alicloud": "eci", "huawei": "huaweicci", "nomad": "nomad", "k8s": "tensilekube", "mock": "mock", "cri": "cri", "openstack": "zun",
	} {
		var out strings.Builder
		cmd := cli.Program{Name: "vk", Providers: providers()}.Command()
		cmd.SetArgs([]string{"providers", name})
		cmd.SetOut(&out)
		if err := cmd.Execute(); err != nil || !strings.HasPrefix(out.String(), "# Provider "+want+":") {
			t.Errorf("%s: got %.40q, %v, want provider %s", name, out.String(), err, want)
		}
	}
}

// Sources: github.com/virtual-kubelet/azure-aci, pkg/ (os.Getenv); github.com/virtual-kubelet/alibabacloud-eci, eci.go;
// github.com/virtual-kubelet/openstack-zun, zun.go (AuthOptionsFromEnv of gophercloud).
func TestPublishedD13VariablesAreInTheReference(t *testing.T) {
	reference, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for provider, config := range map[string]any{"aci": aci.Config{}, "azurebatch": azurebatch.Config{}, "eci": eci.Config{}, "fargate": fargate.Config{}, "huaweicci": huaweicci.Config{}, "nomad": nomad.Config{}, "stackpath": stackpath.Config{}, "zun": zun.Config{}} {
		for variable, field := range variables(reflect.TypeOf(config), "") {
			shared := provider == "azurebatch" && strings.HasPrefix(field, "credentials.") // shared with aci, which has the rows
			if !shared && !ofTools.MatchString(variable) {
				want = append(want, fmt.Sprintf("`%s` %s `%s`", variable, provider, field))
			}
		}
	}
	for suffix, resource := range map[string]string{"CPU": "cpu", "MEMORY": "memory", "POD": "pods"} { // entries of a map, which have no tags
		want = append(want, fmt.Sprintf("`ECI_QUOTA_%s` eci `capacity.%s`", suffix, resource))
	}
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[A-Z_]+`) \\| .* \\| (.*) \\| works: the field (`.*`) of").FindAllStringSubmatch(string(reference), -1) {
		got = append(got, strings.Join(row[1:], " "))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the table in cli/oldnames.go and the fields of the providers differ:\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// variables returns the fields of a configuration that have another variable name, by that name.
func variables(config reflect.Type, path string) map[string]string {
	found := map[string]string{}
	for i := range config.NumField() {
		f := config.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag := f.Tag.Get("env"); tag != "" {
			for _, variable := range strings.Split(tag, ",") {
				found[variable] = path + name
			}
		} else if f.Type.Kind() == reflect.Struct && name != "" {
			for variable, field := range variables(f.Type, path+name+".") {
				found[variable] = field
			}
		}
	}
	return found
}
