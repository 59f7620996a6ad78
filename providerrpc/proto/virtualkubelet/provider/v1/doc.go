// SPDX-License-Identifier: Apache-2.0

// Package providerv1 is generated from provider.proto: the messages and the service that a plugin implements.
// The file provider.proto is the documentation; hack/generate-rpc.sh generates the Go files of this package. Go providers need package
// providerrpc only.
package providerv1
