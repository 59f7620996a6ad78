// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"bytes"
	"io"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// console is a caller of exec without input.
type console struct{ out, err bytes.Buffer }

func newConsole() *console { return &console{} }

type open struct{ io.Writer }

func (open) Close() error { return nil }

func (*console) Stdin() io.Reader            { return nil }
func (c *console) Stdout() io.WriteCloser    { return open{&c.out} }
func (c *console) Stderr() io.WriteCloser    { return open{&c.err} }
func (*console) TTY() bool                   { return false }
func (*console) Resize() <-chan api.TermSize { return nil }
