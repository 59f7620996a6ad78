// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/jsonfile"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

func init() {
	podjob.Main(Host, func(args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("got %q, want the directory of a pod", args)
		}
		dir := args[0]
		return podjob.Run(context.Background(), podjob.Config{
			Host: directory(dir), Job: os.Getenv("SLURM_JOB_ID"), Machine: os.Getenv("SLURMD_NODENAME"), LogDir: filepath.Join(dir, LogDir),
			// The directory of a pod is sharedDir/CLUSTER/NODE/UID: a pod must not read the files of others.
			Hide: filepath.Join(dir, "..", "..", ".."), KeepVariable: ofSlurm,
		})
	})
}

// ofSlurm reports whether a variable describes the resources of the job. The pod must not get the token of the submitting user.
func ofSlurm(name string) bool {
	return strings.HasPrefix(name, "SLURM_") && name != "SLURM_TIME_FORMAT" && name != "SLURM_JWT"
}

// directory is the directory of a pod on the shared file system.
type directory string

var _ podjob.Host = directory("")

func (d directory) file(name string) string { return filepath.Join(string(d), name) }

// Claim implements podjob.Host. If the answer to a submission was lost, there may be two jobs for one pod, and
// the second one does nothing.
func (d directory) Claim(context.Context) error {
	path, own := d.file(ClaimFile), os.Getenv("SLURM_JOB_ID")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(own)
		return errors.Join(err, f.Close())
	}
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	other, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return fmt.Errorf("job %s runs this pod, or has run it: job %s does nothing", strings.TrimSpace(string(other)), own)
}

// Bundle implements podjob.Host.
func (d directory) Bundle(context.Context) (b podjob.Bundle, err error) {
	err = jsonfile.Read(d.file(BundleFile), &b)
	return b, err
}

// WriteStatus implements podjob.Host.
func (d directory) WriteStatus(_ context.Context, s podjob.Status) error {
	return jsonfile.Show(d.file(StatusFile), s)
}

// StopOrder implements podjob.Host.
func (d directory) StopOrder(context.Context) (*podjob.Stop, error) {
	var stop podjob.Stop
	if err := jsonfile.Read(d.file(StopFile), &stop); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	return &stop, nil
}
