// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// emulated are the providers with an emulator of their cloud.
var emulated = []string{"aci", "azurebatch", "eci", "fargate", "stackpath", "zun"}

// imageFile is the image of the first pod.
const imageFile = "demo-image.tar"

// Command returns the command demo of a program with the given version.
func Command(version string) *cobra.Command {
	d := &demo{version: version}
	cmd := &cobra.Command{
		Use:   "demo --provider NAME",
		Short: "Start a cluster, a virtual node and a first pod on this machine, until Ctrl-C",
		Long: "Start a cluster, a virtual node and a first pod on this machine, until Ctrl-C, which removes all of it.\n\n" +
			"Provider process, the default, runs containers on this machine, and mock only simulates pods. The clouds of " + strings.Join(emulated, ", ") + "\n" +
			"are emulated on this machine. Another provider needs --provider-config with a backend that it reaches.\n\n" +
			"The programs that it starts are in the archive of a release, beside this program.",
		Example: "  virtual-kubelet demo\n  virtual-kubelet demo --provider eci",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("demo: unexpected argument %q: the provider is given by --provider", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.provider, d.config = cmd.Flag("provider").Value.String(), cmd.Flag("provider-config").Value.String()
			d.out = cmd.OutOrStdout()
			if err := d.findPrograms(); err != nil {
				return fmt.Errorf("demo: %w", err)
			}
			if err := d.run(cmd.Context()); err != nil {
				return fmt.Errorf("demo: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&d.devcluster, "devcluster", "", "`file` of the program devcluster; by default beside this program, or in PATH. The program emulate and the image are searched beside it too")
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
			f.Hidden = f.Name != "provider" && f.Name != "provider-config" // the others are of nodes
		})
		cmd.Root().HelpFunc()(cmd, args)
	})
	return cmd
}

// findPrograms finds the programs that the demo of the provider starts.
func (d *demo) findPrograms() error {
	if d.provider == "" {
		d.provider = "process"
	}
	if d.config == "" && d.provider != "mock" && d.provider != "process" && d.provider != "cri" && !d.isEmulated() {
		return fmt.Errorf("provider %s: there is no emulator of its backend: set --provider-config to a file with a backend that this machine reaches; `virtual-kubelet providers %s` prints a sample",
			d.provider, d.provider)
	}
	var err error
	if d.node, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	folders := []string{filepath.Dir(d.node)}
	if d.devcluster != "" {
		folders = append(folders, filepath.Dir(d.devcluster))
		if _, err := os.Stat(d.devcluster); err != nil {
			return fmt.Errorf("--devcluster: %w", err)
		}
	} else if d.devcluster, err = d.findFile("devcluster", folders); err != nil {
		return err
	}
	if d.isEmulated() {
		if d.emulate, err = d.findFile("emulate", folders); err != nil {
			return err
		}
	}
	if d.hasImage() {
		d.image, err = d.findFile(imageFile, folders)
	}
	return err
}

// findFile finds a file in one of the folders or, if it is a program, in PATH.
func (d *demo) findFile(name string, folders []string) (string, error) {
	for _, folder := range folders {
		if path := filepath.Join(folder, name); isFile(path) {
			return path, nil
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	version := d.version
	if version == "" {
		version = "VERSION"
	}
	return "", fmt.Errorf("there is no %s beside this program (%s): it is in the archive of the release, https://github.com/virtual-kubelet/virtual-kubelet/releases/download/%s/virtual-kubelet_%s_linux_%s.tar.gz; in a clone, `make demo-files` makes it",
		name, strings.Join(slices.Compact(folders), ", "), version, version, runtime.GOARCH)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// isEmulated reports whether the backend is an emulator.
func (d *demo) isEmulated() bool { return d.config == "" && slices.Contains(emulated, d.provider) }

// hasImage reports whether the backend runs containers on this machine from the image next to this program.
func (d *demo) hasImage() bool { return d.isEmulated() || d.config == "" && d.provider == "process" }
