// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"fmt"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec/shelltest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// shelled runs containers with a stand-in for a shell.
type shelled struct{ *inprocess.Provider }

// RunInContainer implements nodeutil.Provider.
func (s *shelled) RunInContainer(ctx context.Context, namespace, pod, container string, cmd []string, attach api.AttachIO) error {
	run := func(command []string, attach api.AttachIO) error {
		return s.Provider.RunInContainer(ctx, namespace, pod, container, command, attach)
	}
	switch {
	case cmd[0] != "sh":
		return run(cmd, attach)
	case strings.HasPrefix(cmd[2], "echo "):
		_, err := fmt.Fprintln(attach.Stdout(), strings.TrimPrefix(cmd[2], "echo "))
		return err
	}
	return shelltest.Run(cmd, attach, run)
}
