// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/state"
)

// stopGrace is a cluster's time to stop cleanly; it usually needs one or two seconds.
const stopGrace = 15 * time.Second

func newDown(t *target) *cobra.Command {
	var remove bool
	c := &cobra.Command{
		Use: "down", Short: "Stop a cluster", Args: cobra.NoArgs,
		Long: "Stop a cluster and wait until its process has ended. A cluster that is stopped already is no error.",
		RunE: func(c *cobra.Command, _ []string) error {
			began := time.Now()
			dir, err := t.dir()
			if err != nil {
				return err
			}
			pid, err := stop(dir)
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			if pid == 0 {
				fmt.Fprintf(out, "cluster %s is not running\n", t.name)
			} else {
				printStep(out, began, fmt.Sprintf("cluster %s stopped (pid %d)", t.name, pid))
			}
			if !remove || !dir.Exists() {
				return nil
			}
			if err := removeStopped(dir); err != nil {
				return err
			}
			printStep(out, began, "data deleted: "+dir.Path())
			return nil
		},
	}
	c.Flags().BoolVar(&remove, "delete", false, "delete everything of the cluster afterwards: data, certificates, log")
	return c
}

// stop ends the cluster's process, with SIGKILL if SIGTERM does not end it in time. It returns the process ID,
// or 0 if there is no process.
func stop(dir state.Dir) (pid int, err error) {
	pid, err = dir.Holder()
	if err != nil || pid == 0 {
		return 0, err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return 0, fmt.Errorf("find process %d of cluster %s: %w", pid, dir.Name, err)
	}
	defer func() { _ = process.Release() }()
	// From now on the process ID cannot pass to another process. Check that it is still the cluster's process.
	if again, err := dir.Holder(); err != nil || again != pid {
		return 0, err
	}
	if err := process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, fmt.Errorf("stop process %d of cluster %s: %w", pid, dir.Name, err)
	}

	timeout := time.AfterFunc(stopGrace, func() { _ = process.Kill() }) // an error means that the process is gone
	defer timeout.Stop()
	lock, err := dir.WaitLock()
	if errors.Is(err, fs.ErrNotExist) {
		return pid, nil // the cluster was started with --keep=false
	}
	if err != nil {
		return pid, err
	}
	return pid, lock.Unlock()
}

func removeStopped(dir state.Dir) error {
	lock, err := dir.TryLock()
	if errors.Is(err, state.ErrLocked) {
		return fmt.Errorf("delete cluster %s: another command has started it again", dir.Name)
	}
	if err != nil {
		return err
	}
	return errors.Join(dir.Delete(), lock.Unlock())
}
