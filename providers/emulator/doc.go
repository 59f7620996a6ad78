// SPDX-License-Identifier: Apache-2.0

// Package emulator is what servers of cloud services for tests share: a record of requests, faults, and a fleet that runs the
// containers of a group with a real provider, so that logs, exit codes and exec are genuine.
//
// The guarantee: a request that a fault answers has no effect, one whose answer is lost has, and the record has both. What is
// created shows late and what is deleted goes late, as long as Lag says.
//
// What surprises: no service is here, and no client. A server of a service checks authentication, validates each request against the
// vendor's own description, and keeps its states; this package only runs the containers behind them.
package emulator
