// SPDX-License-Identifier: Apache-2.0

// Package task is this program as what a task of Azure Batch runs: a pod, by package podblobs.
//
// The guarantee: nothing of the pod is in the command line, nor in the environment.
//
// What surprises: it imports none of the SDK of Batch, so that a task begins soon.
package task

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/podblobs"
)

const (
	host = "azurebatch"
	// CommandLine is that of every task. It is executed without a shell.
	CommandLine = "./" + podblobs.ProgramFile + " " + enter.Marker + " " + enter.ModeRun + " " + host
	// ExitClaimed is the exit code of a task that did nothing, because an earlier run of it took the pod.
	ExitClaimed = 75
)

func init() {
	podjob.Main(host, func([]string) error {
		err := podblobs.Run(context.Background(), os.Getenv("AZ_BATCH_TASK_ID"), os.Getenv("AZ_BATCH_NODE_ID"), os.Getenv("AZ_BATCH_NODE_ROOT_DIR"))
		if errors.Is(err, podblobs.ErrClaimed) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(ExitClaimed)
		}
		return err
	})
}
