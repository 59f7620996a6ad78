// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"maps"
	"net/url"
	"testing"
)

func TestCheck(t *testing.T) {
	good := map[string]string{
		"RegionId": "cn-hangzhou", "ContainerGroupName": "g", "Container.1.Name": "c", "Container.1.Image": "i", "Cpu": "0.25",
		"Container.1.EnvironmentVar.1.Key": "K", "Container.1.EnvironmentVarHide": "true", "Container.1.Command.1": "a", "Container.1.Command.2": "b",
	}
	for _, c := range []struct {
		name       string
		set, value string
		ok         bool
	}{
		{"as it is", "Memory", "0.5", true},
		{"an unknown field", "Sidecar", "x", false},
		{"an unknown field of a container", "Container.1.Sidecar", "x", false},
		{"a list without a number", "Container.Name", "x", false},
		{"a list from 0", "Container.0.Name", "x", false},
		{"a list with a gap", "Container.1.Command.4", "x", false},
		{"no number", "Memory", "2Gi", false},
		{"no boolean", "Container.1.EnvironmentVarHide", "yes", false},
		{"an object in the place of a value", "Cpu.1", "1", false},
		{"without a name", "ContainerGroupName", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			form := url.Values{}
			for key, value := range good {
				form.Set(key, value)
			}
			form.Set(c.set, c.value)
			if err := Check("CreateContainerGroup", form); (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
	if Check("StopContainerGroup", url.Values{}) == nil {
		t.Error("an operation that is not there passes")
	}
	for operation := range maps.Keys(required) {
		if table()[operation] == nil {
			t.Errorf("the table lacks %s", operation)
		}
	}
}
