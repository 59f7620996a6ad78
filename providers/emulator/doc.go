// SPDX-License-Identifier: Apache-2.0

// Package emulator is the shared part of test servers for cloud services. It has a record of requests, faults,
// and a fleet. The fleet runs the containers of a group with a real provider, so that logs, exit codes and exec
// are genuine.
//
// The guarantee: a request that a fault answers has no effect, a request with a lost answer has its effect, and the record has both. A
// created group appears late and a deleted group disappears late, by the time of Lag.
//
// Note: this package has no service and no client. The server of a service checks authentication,
// validates each request against the vendor's own description, and keeps its states. This package only runs the
// containers behind the server.
package emulator
