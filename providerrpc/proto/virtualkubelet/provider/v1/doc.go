// SPDX-License-Identifier: Apache-2.0

// Package providerv1 is generated from provider.proto: the messages and the service that a plugin implements. The
// documentation is in provider.proto; hack/generate-rpc.sh generates the Go files. Go providers need only package
// providerrpc.
package providerv1
