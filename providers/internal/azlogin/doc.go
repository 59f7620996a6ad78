// SPDX-License-Identifier: Apache-2.0

// Package azlogin is the shared part of providers for services of Azure: the login, and the errors of Azure.
//
// The guarantee: the provider asks for a token when a request needs one, a replaced secret is used from the next token on, and no error contains a
// secret.
//
// Note: this package does not retry requests, because the node waits for the retry delay of the service.
package azlogin
