// SPDX-License-Identifier: Apache-2.0

// Package logrus lets this library log through logrus.
//
// Lines keep the caller's file and line when the logrus logger reports callers. Fatal ends the process, as
// logrus does.
//
// Note: logrus drops a value of a function type and replaces it by a note in the line.
package logrus

import (
	"github.com/sirupsen/logrus"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// adapter embeds the entry instead of calling it, because logrus would otherwise report a method of adapter as the caller of every line.
type adapter struct{ *logrus.Entry }

// FromLogrus returns a logger that writes through entry, with its fields.
func FromLogrus(entry *logrus.Entry) log.Logger {
	return &adapter{entry}
}

func (a *adapter) WithField(key string, value any) log.Logger {
	return &adapter{a.Entry.WithField(key, value)}
}

func (a *adapter) WithFields(fields log.Fields) log.Logger {
	return &adapter{a.Entry.WithFields(logrus.Fields(fields))}
}

func (a *adapter) WithError(err error) log.Logger {
	return &adapter{a.Entry.WithError(err)}
}
