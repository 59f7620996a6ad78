// SPDX-License-Identifier: Apache-2.0

package service

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// TestRegistryLoginHasTheHostAlone: RegistryLogin returns the first login for the image that has a user name.
// Its registry is the host alone, without scheme and path.
func TestRegistryLoginHasTheHostAlone(t *testing.T) {
	in := &Inputs{Logins: []node.RegistryCredential{
		{Registry: "reg.example.com", IdentityToken: "t"}, {Registry: "https://reg.example.com/v1/", Username: "u", Password: "p"},
		{Registry: "*.example.org", Username: "v", Password: "q"}, {Registry: "reg.example.com", Username: "w", Password: "r"},
	}}
	for image, want := range map[string]string{"reg.example.com/a/b": "reg.example.com u", "eu.example.org/b": "eu.example.org v", "other.example.net/c": ""} {
		got, ok := in.RegistryLogin(image)
		if text := got.Registry + " " + got.Username; ok != (want != "") || ok && text != want {
			t.Errorf("%s: got %q, %t, want %q", image, text, ok, want)
		}
	}
}
