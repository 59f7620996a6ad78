// SPDX-License-Identifier: Apache-2.0

// Package task runs a pod in a task of Azure Batch, with package podblobs.
//
// The guarantee: neither the command line nor the environment contains data of the pod.
//
// Note: it does not import the SDK of Batch, so that a task starts fast.
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
	// CommandLine is the command line of every task. Batch runs it without a shell.
	CommandLine = "./" + podblobs.ProgramFile + " " + enter.Marker + " " + enter.ModeRun + " " + host
	// ExitClaimed is the exit code of a task that did nothing, because an earlier run of the task has claimed the pod.
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
