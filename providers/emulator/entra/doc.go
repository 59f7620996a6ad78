// SPDX-License-Identifier: Apache-2.0

// Package entra emulates Microsoft Entra and the metadata service of machines, for emulators of services of
// Azure.
//
// The guarantee: only the principal and the identities of machines get tokens, each token is for one audience,
// and each token expires.
//
// Note: tokens are random strings, so only the same process recognizes them.
package entra
