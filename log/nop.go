// SPDX-License-Identifier: Apache-2.0

package log

// nop discards everything. Its Fatal does not end the process.
type nop struct{}

func (nop) Debug(...any)                 {}
func (nop) Debugf(string, ...any)        {}
func (nop) Info(...any)                  {}
func (nop) Infof(string, ...any)         {}
func (nop) Warn(...any)                  {}
func (nop) Warnf(string, ...any)         {}
func (nop) Error(...any)                 {}
func (nop) Errorf(string, ...any)        {}
func (nop) Fatal(...any)                 {}
func (nop) Fatalf(string, ...any)        {}
func (nop) WithField(string, any) Logger { return nop{} }
func (nop) WithFields(Fields) Logger     { return nop{} }
func (nop) WithError(error) Logger       { return nop{} }
