// SPDX-License-Identifier: Apache-2.0

package remotetest

import (
	"bytes"
	"io"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// Console is an api.AttachIO without input that records the output.
type Console struct{ Out, Err bytes.Buffer }

type open struct{ io.Writer }

func (open) Close() error { return nil }

// Stdin implements api.AttachIO.
func (*Console) Stdin() io.Reader { return nil }

// Stdout implements api.AttachIO.
func (c *Console) Stdout() io.WriteCloser { return open{&c.Out} }

// Stderr implements api.AttachIO.
func (c *Console) Stderr() io.WriteCloser { return open{&c.Err} }

// TTY implements api.AttachIO.
func (*Console) TTY() bool { return false }

// Resize implements api.AttachIO.
func (*Console) Resize() <-chan api.TermSize { return nil }
