// SPDX-License-Identifier: Apache-2.0

package aci

import (
	_ "embed"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/fields"
)

// description is that of the vendor's package for JavaScript, with its source and date in it.
//
//go:embed fields.json
var description []byte

var models = sync.OnceValue(func() fields.Models { return fields.Parse(description) })

// readOnly ends the problem of a field that cannot be written.
const readOnly = fields.ReadOnly

// check returns what of the data is not as a model says, sorted. None: it may be sent.
func check(model string, data []byte) []string { return models().Check(model, data) }
