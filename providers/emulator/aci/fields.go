// SPDX-License-Identifier: Apache-2.0

package aci

import (
	_ "embed"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/fields"
)

// description is the description in the vendor's package for JavaScript, with its source and date in it.
//
//go:embed fields.json
var description []byte

var models = sync.OnceValue(func() fields.Models { return fields.Parse(description) })

// readOnly is the suffix of the problem of a read-only field.
const readOnly = fields.ReadOnly

// checkModel returns the sorted differences between the data and a model. None means that the data may be sent.
func checkModel(model string, data []byte) []string { return models().Check(model, data) }
