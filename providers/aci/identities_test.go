// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	emulated "github.com/virtual-kubelet/virtual-kubelet/providers/emulator/aci"
)

const (
	identities = "/subscriptions/6f2d8e1c-0000-4000-8000-000000000001/resourceGroups/pods/providers/Microsoft.ManagedIdentity/userAssignedIdentities/"
	reader     = identities + "reader"
	writer     = identities + "writer"
	puller     = identities + "puller"
)

// TestIdentitiesOfPods checks that a pod gets exactly the identities that it names and the configuration allows,
// in any case of letters, and the identities that pull its images.
func TestIdentitiesOfPods(t *testing.T) {
	m := testMapping(t)
	m.config.Identities, m.config.RegistryIdentities = []string{reader, writer}, map[string]string{"home.azurecr.io": puller}
	for _, c := range []struct {
		asks  string
		image string
		want  []string
		login string // user or identity
	}{
		{"", "busybox", nil, ""}, {strings.ToUpper(reader) + ", " + writer, "busybox", []string{reader, writer}, ""},
		{"", "home.azurecr.io/app:1", []string{puller}, puller}, {reader, "home.azurecr.io/app:1", []string{puller, reader}, puller},
		{"", "registry.example/team/app", nil, "u"},
	} {
		pod := whole().Pod
		pod.Spec.InitContainers, pod.Spec.Containers[0].Image = nil, c.image
		pod.Annotations[AnnotationIdentity] = c.asks
		r := resolve(pod)
		r.Logins = append(r.Logins, node.RegistryCredential{Registry: "home.azurecr.io", Username: "old", Password: "p"}) // the identity takes precedence over this login
		group, err := m.group(r)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if group.Identity != nil {
			got = slices.Sorted(maps.Keys(group.Identity.UserAssignedIdentities))
			if *group.Identity.Type != "UserAssigned" {
				t.Errorf("the type of the identity is %s", *group.Identity.Type)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, image %s: the group has %v, want %v", c.asks, c.image, got, c.want)
		}
		login := ""
		for _, l := range group.Properties.ImageRegistryCredentials {
			login += value(l.Username) + value(l.Identity)
		}
		if login != c.login {
			t.Errorf("image %s is pulled by %q, want %q", c.image, login, c.login)
		}
	}
	pod := whole().Pod
	pod.Annotations[AnnotationIdentity] = puller
	if _, err := m.group(resolve(pod)); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "is none of identities") {
		t.Errorf("an identity that nobody allows: got %v", err)
	}
	c := good()
	c.Identities, c.RegistryIdentities = []string{"reader"}, map[string]string{"home.azurecr.io:443": puller, "other.azurecr.io": "puller"}
	_, err := c.complete()
	for _, want := range []string{`identities[0]: "reader"`, `"home.azurecr.io:443": want the host`, `registryIdentities[other.azurecr.io]: "puller"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the configuration: want %s, got %v", want, err)
		}
	}
}

// TestACITakesGroupsWithIdentities checks that ACI accepts such groups if the provider may assign the
// identities.
func TestACITakesGroupsWithIdentities(t *testing.T) {
	a := testAzure(t)
	p := a.provider(t, func(c *Config) {
		c.Identities, c.RegistryIdentities = []string{reader}, map[string]string{"home.azurecr.io": puller}
	}).run(t)
	create := func(uid string) error {
		pod := programPod(uid, stays)
		pod.Annotations = map[string]string{AnnotationIdentity: reader}
		pod.Spec.Containers = append(pod.Spec.Containers, *pod.Spec.Containers[0].DeepCopy())
		pod.Spec.Containers[1].Name, pod.Spec.Containers[1].Image = "pulled", "home.azurecr.io/app:1"
		return p.CreatePod(t.Context(), pod)
	}
	if err := create("u-1"); err != nil {
		t.Errorf("with all rights: %v", err)
	}
	a.Permit(without(emulated.ActionAssign))
	if err := create("u-2"); err == nil || errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "assign/action") {
		t.Errorf("without the right to assign: got %v", err)
	}
}
