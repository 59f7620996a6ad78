// SPDX-License-Identifier: Apache-2.0

// Package cli makes the program of a provider: flags, environment, configuration
// file, logs, traces, metrics, the kubelet API and the main loop.
//
// A program needs one call in main:
//
//	func main() {
//		cli.Main(cli.Provider{Name: "example", New: newExample})
//	}
//
// The guarantee: a setting has one name in each place, and one that is accepted works;
// what no longer exists is refused with a message that says what to use
// instead. Flags win over the environment, that over the file, that over the defaults.
//
// What surprises: the kubelet API is served only with a certificate, and only to callers that
// the API server knows and allows. To do without has to be asked for by name.
package cli
