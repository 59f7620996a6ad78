// SPDX-License-Identifier: Apache-2.0

// Package cli makes the program of a provider: flags, environment, configuration file, logs, traces, metrics,
// the kubelet API and the main loop.
//
// A program needs one call in main:
//
//	func main() {
//		cli.Main(cli.Provider{Name: "example", New: newExample})
//	}
//
// The guarantee: a setting has one name in each place, and an accepted setting works. Settings that no longer
// exist are refused with a message that names the replacement. Flags override the environment, which overrides
// the file, which overrides the defaults.
//
// Note: the kubelet API is served only with a certificate, and only to callers that the API server knows
// and allows. To disable this, the user must ask for it by name.
package cli
