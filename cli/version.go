// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// unknownVersion stands for values that the build did not record.
const unknownVersion = "N/A"

// version returns the version of the program: the version set at the build, else the version of its module.
func (p Program) version() string {
	if p.Version != "" {
		return p.Version
	}
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" && build.Main.Version != "(devel)" {
		return build.Main.Version
	}
	return unknownVersion
}

// buildSetting returns the value that Go recorded at the build under the key.
func buildSetting(key string) string {
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, s := range build.Settings {
			if s.Key == key {
				return s.Value
			}
		}
	}
	return unknownVersion
}

// buildInfo is the output of the command version.
type buildInfo struct {
	Version    string `json:"version"`
	Commit     string `json:"gitCommit"`
	BuildTime  string `json:"buildTime"`
	Go         string `json:"goVersion"`
	Kubernetes string `json:"kubernetesVersion"`
	Platform   string `json:"platform"`
	GVisor     string `json:"gVisorVersion,omitempty"`
}

// build returns the build information of the program.
func (p Program) build() buildInfo {
	return buildInfo{
		Version:    p.version(),
		Commit:     cmp.Or(p.Commit, buildSetting("vcs.revision")),
		BuildTime:  cmp.Or(p.BuildTime, buildSetting("vcs.time")),
		Go:         runtime.Version(),
		Kubernetes: kubernetesVersion(),
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
		GVisor:     p.GVisor,
	}
}

// String is the text for people.
func (b buildInfo) String() string {
	text := fmt.Sprintf("Version:    %s\nCommit:     %s\nBuilt:      %s\nGo:         %s\nKubernetes: %s\nPlatform:   %s\n",
		b.Version, b.Commit, b.BuildTime, b.Go, b.Kubernetes, b.Platform)
	if b.GVisor != "" {
		text += "gVisor:     " + b.GVisor + "\n"
	}
	return text
}

func (p Program) versionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the program and of its parts",
		Args:  noArguments(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := []byte(p.build().String())
			var err error
			switch output {
			case "text":
			case "json":
				text, err = json.MarshalIndent(p.build(), "", "  ")
				text = append(text, '\n')
			case "yaml":
				text, err = yaml.Marshal(p.build())
			default:
				return fmt.Errorf("--output %q: want text, json or yaml", output)
			}
			if err == nil {
				_, err = cmd.OutOrStdout().Write(text)
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "`format`: text, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

// kubeletVersion returns the version in the Node object: the Kubernetes release of the built-in libraries, which
// determine the behavior of the node, and the version of the program.
func (p Program) kubeletVersion() string {
	kubernetes := kubernetesVersion()
	if v := p.version(); v != unknownVersion {
		return kubernetes + "-vk-" + v
	}
	return kubernetes + "-vk"
}

// kubernetesVersion returns the Kubernetes release of the built-in libraries.
func kubernetesVersion() string {
	kubernetes := "v0.0.0"
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, m := range build.Deps {
			if m.Path != "k8s.io/client-go" {
				continue
			}
			if m.Replace != nil {
				m = m.Replace
			}
			// The libraries have version v0.X.Y for Kubernetes v1.X.Y.
			if rest, ok := strings.CutPrefix(m.Version, "v0."); ok {
				kubernetes = "v1." + rest
			}
		}
	}
	return kubernetes
}
