// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"runtime/debug"
	"strings"
)

// unknownVersion stands for what the build did not say.
const unknownVersion = "N/A"

// version is the version of the program: the one it was built with, else that
// of its module.
func (p Program) version() string {
	if p.Version != "" {
		return p.Version
	}
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" && build.Main.Version != "(devel)" {
		return build.Main.Version
	}
	return unknownVersion
}

func (p Program) buildTime() string {
	if p.BuildTime != "" {
		return p.BuildTime
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, s := range build.Settings {
			if s.Key == "vcs.time" {
				return s.Value
			}
		}
	}
	return unknownVersion
}

// kubeletVersion is what the Node object says: the Kubernetes release whose libraries are
// built in, which decide how the node behaves, and the version of the program.
func (p Program) kubeletVersion() string {
	kubernetes := "v0.0.0"
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, m := range build.Deps {
			if m.Path != "k8s.io/client-go" {
				continue
			}
			if m.Replace != nil {
				m = m.Replace
			}
			// The libraries are v0.X.Y for Kubernetes v1.X.Y.
			if rest, ok := strings.CutPrefix(m.Version, "v0."); ok {
				kubernetes = "v1." + rest
			}
		}
	}
	if v := p.version(); v != unknownVersion {
		return kubernetes + "-vk-" + v
	}
	return kubernetes + "-vk"
}
