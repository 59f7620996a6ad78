// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"encoding/base64"
	"strings"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
)

// secretsOf are the texts of a group that nobody may read in a log, each as it is sent and as it is.
func secretsOf(g *aci.ContainerGroup) (all []string) {
	add := func(texts ...*string) {
		for _, t := range texts {
			if value(t) != "" {
				all = append(all, *t)
			}
		}
	}
	environment := func(variables []*aci.EnvironmentVariable) {
		for _, v := range variables {
			add(v.SecureValue)
		}
	}
	p := g.Properties
	for _, c := range p.InitContainers {
		environment(c.Properties.EnvironmentVariables)
	}
	for _, c := range p.Containers {
		environment(c.Properties.EnvironmentVariables)
	}
	for _, v := range p.Volumes {
		for _, file := range v.Secret {
			add(file)
			if plain, err := base64.StdEncoding.DecodeString(value(file)); err == nil {
				add(new(strings.TrimSpace(string(plain))))
			}
		}
		if v.AzureFile != nil {
			add(v.AzureFile.StorageAccountKey)
		}
	}
	for _, c := range p.ImageRegistryCredentials {
		add(c.Password)
	}
	if p.Diagnostics != nil && p.Diagnostics.LogAnalytics != nil {
		add(p.Diagnostics.LogAnalytics.WorkspaceKey)
	}
	return all
}

// withheld is an error without the secrets that a service has quoted in it. Its kinds are those of the error.
type withheld struct {
	error
	text string
}

// Error implements error.
func (w withheld) Error() string { return w.text }

// Unwrap lets errors.As see the kinds.
func (w withheld) Unwrap() error { return w.error }

// withhold takes secrets out of an error.
func withhold(err error, secrets []string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "[hidden]")
	}
	if text == err.Error() {
		return err
	}
	return withheld{err, text}
}
