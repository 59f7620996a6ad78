// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"cmp"
	"encoding/base64"
	"slices"
)

// secrets are the texts of a request that nobody is to read elsewhere: files, variables and passwords, the longest first.
func (r createRequest) secrets() (all []string) {
	for _, list := range [][]container{r.InitContainer, r.Container} {
		for i := range list {
			for _, v := range list[i].EnvironmentVar {
				if v.Value != nil {
					all = append(all, *v.Value)
				}
			}
		}
	}
	for _, v := range r.Volume {
		for _, f := range v.ConfigFileVolume.ConfigFileToPath {
			data, _ := base64.StdEncoding.DecodeString(f.Content) // it was made here
			all = append(all, f.Content, string(data))
		}
	}
	for _, c := range r.ImageRegistryCredential {
		all = append(all, c.Password)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return all
}
