// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
)

// TestPublishedC34EveryRuleOfECIIsKept checks that the emulator refuses each group that breaks a rule, and no
// other.
func TestPublishedC34EveryRuleOfECIIsKept(t *testing.T) {
	good := map[string]string{"RegionId": "r", "ContainerGroupName": "nginx-test", "Container.1.Name": "c", "Container.1.Image": "i"}
	many := func(n int, format, value string) map[string]string {
		out := map[string]string{}
		for i := range n {
			out[fmt.Sprintf(format, i+1)] = value
		}
		return out
	}
	disksOf := func(n int) map[string]string {
		out := many(n, "Volume.%d.FlexVolume.Driver", "alicloud/disk")
		for i := range n {
			at := fmt.Sprintf("Volume.%d.", i+1)
			out[at+"Name"], out[at+"Type"], out[at+"FlexVolume.Options"] = at, "FlexVolume", fmt.Sprintf(`{"volumeId":"d-%d"}`, i)
		}
		return out
	}
	broken := []map[string]string{ // in the order of the rules
		{"InitContainer.1.Name": "c"},
		{"Volume.1.Name": "v", "Volume.2.Name": "v"},
		{"ContainerGroupName": "Nginx"},
		{"ClientToken": strings.Repeat("x", 65)},
		{"VSwitchId": strings.Repeat("v,", 10) + "v"},
		many(21, "Tag.%d.Key", "k"),
		{"Tag.1.Key": "k", "Tag.1.Value": strings.Repeat("x", 129)},
		many(11, "ImageRegistryCredential.%d.Server", "s"),
		{"SpotStrategy": "SpotWithPriceLimit"},
		{"SpotPriceLimit": "0.1234"},
		{"EipBandwidth": "5"},
		{"Container.1.EnvironmentVar.1.Key": "a.b"},
		{"Container.1.EnvironmentVar.1.Key": "A", "Container.1.EnvironmentVar.1.Value": strings.Repeat("x", 257)},
		{"Container.1.EnvironmentVar.1.Key": "A", "Container.1.EnvironmentVar.1.FieldRef.FieldPath": "status.hostIP"},
		many(241, "Container.1.EnvironmentVar.%d.Key", "A"),
		many(101, "Container.1.Command.%d", "a"),
		many(11, "Container.1.Arg.%d", "a"),
		{"Container.1.TerminationMessagePolicy": "File"},
		{"Container.1.SecurityContext.Capability.Add.1": "SYS_ADMIN"},
		{"Container.1.ReadinessProbe.SuccessThreshold": "2"},
		{"Volume.1.ConfigFileVolume.ConfigFileToPath.1.Content": base64.StdEncoding.EncodeToString(make([]byte, 32<<10+1))},
		{"Volume.1.Name": "v", "Volume.1.ConfigFileVolume.ConfigFileToPath.1.Content": base64.StdEncoding.EncodeToString(make([]byte, 31<<10)),
			"Volume.2.ConfigFileVolume.ConfigFileToPath.1.Content": base64.StdEncoding.EncodeToString(make([]byte, 30<<10))},
		{"Volume.1.ConfigFileVolume.ConfigFileToPath.1.Mode": "420"},
		disksOf(7),
		{"Volume.1.Type": "FlexVolume", "Volume.1.FlexVolume.Driver": "alicloud/disk", "Volume.1.FlexVolume.Options": `{"volumeId":"d-1"}`, "Volume.1.FlexVolume.FsType": "ntfs"},
		{"SecurityContext.Sysctl.1.Name": "net.core.somaxconn"},
		{"HostSecurityContext.Sysctl.1.Name": "net.ipv4.ping_group_range"},
		{"Container.1.Gpu": "1"},
		{"Cpu": "1", "Memory": "2", "Container.1.Cpu": "2"},
	}
	if len(broken) != len(rules) {
		t.Fatalf("there are %d rules, and %d groups that break one", len(rules), len(broken))
	}
	first := func(more map[string]string) int {
		form := url.Values{}
		for name, value := range good {
			form.Set(name, value)
		}
		for name, value := range maps.All(more) {
			form.Set(name, value)
		}
		for i, r := range rules {
			if r.broken(fields(form)) != "" {
				if err := brokenRule(fields(form)); err == nil || !strings.Contains(fmt.Sprintf("%+v", err), r.code) {
					t.Errorf("rule %d: the service answers %v, want %s", i, err, r.code)
				}
				return i
			}
		}
		return -1
	}
	whole := base64.StdEncoding.EncodeToString(make([]byte, 30<<10))
	for _, more := range []map[string]string{
		nil,
		many(10, "Container.1.Arg.%d", "a"),
		disksOf(6),
		{"Container.1.Gpu": "1", "InstanceType": "ecs.gn6i-c4g1.xlarge"},
		{"Volume.1.Name": "v", "Volume.1.ConfigFileVolume.ConfigFileToPath.1.Content": whole, "Volume.2.ConfigFileVolume.ConfigFileToPath.1.Content": whole},
		{"Volume.1.ConfigFileVolume.ConfigFileToPath.1.Mode": "0400", "Volume.1.ConfigFileVolume.DefaultMode": "0644"},
		{"SecurityContext.Sysctl.1.Name": "net.ipv4.ping_group_range", "HostSecurityContext.Sysctl.1.Name": "net.core.somaxconn"},
	} {
		if i := first(more); i >= 0 {
			t.Errorf("a group that breaks no rule breaks rule %d", i)
		}
	}
	for i, more := range broken {
		if got := first(more); got != i {
			t.Errorf("group %d breaks rule %d", i, got)
		}
	}
}
